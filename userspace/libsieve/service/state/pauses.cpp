// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/pauses.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include <fmt/core.h>

#include "libsieve/service/state/folder_owner.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

constexpr std::string_view everywhere_name = "paused";
constexpr std::string_view one_begins = "paused.";

std::string name_of(const std::string& interface) {
    return std::string(interface.empty() ? everywhere_name : one_begins) + interface;
}

tl::unexpected<Error> fault(const std::string& state, const std::string& doing, int error) {
    return kernel_refused(
        fmt::format("state directory {}: {}: {}", printable(state), doing, errno_text(error)));
}

Result<UniqueFd> open_folder(const std::string& state) {
    UniqueFd folder(::open(state.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return fault(state, "cannot be opened", errno);
    return folder;
}

Status sync_folder(const std::string& state, const UniqueFd& folder) {
    if (::fsync(folder.get()) != 0) return fault(state, "cannot be written to the disk", errno);
    return {};
}

} // namespace

bool is_pause_file(std::string_view name) {
    return name == everywhere_name || name.starts_with(one_begins);
}

Result<Pauses> read_pauses(const std::string& state) {
    struct Close {
        void operator()(DIR* folder) const { ::closedir(folder); }
    };
    struct stat info {};
    const bool seen = ::stat(state.c_str(), &info) == 0;
    if (seen && !is_ours_alone(info)) return Pauses();
    const std::unique_ptr<DIR, Close> folder(seen ? ::opendir(state.c_str()) : nullptr);
    if (!folder) {
        if (errno == ENOENT || errno == ENOTDIR) return Pauses();
        return fault(state, "its pauses cannot be read", errno);
    }
    Pauses pauses;
    for (;;) {
        errno = 0;
        const dirent* const entry = ::readdir(folder.get());
        if (entry == nullptr && errno != 0) return fault(state, "its pauses cannot be read", errno);
        if (entry == nullptr) return pauses;
        const std::string_view name = entry->d_name;
        if (name == everywhere_name)
            pauses.everywhere = true;
        else if (is_pause_file(name))
            pauses.interfaces.emplace(name.substr(one_begins.size()));
    }
}

Status add_pause(const std::string& state, const std::string& interface) {
    SIEVE_TRY(check_owner(state));
    SIEVE_ASSIGN(const UniqueFd folder, open_folder(state));
    // Whatever has the name is a pause, a folder as well.
    const std::string name = name_of(interface);
    const UniqueFd file(
        ::openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file && errno != EISDIR)
        return fault(state, fmt::format("{} cannot be made", printable(name)), errno);
    if (file && ::fsync(file.get()) != 0) return fault(state, "cannot be written to the disk", errno);
    return sync_folder(state, folder);
}

Result<bool> end_pause(const std::string& state, const std::string& interface) {
    SIEVE_ASSIGN(const Pauses pauses, read_pauses(state));
    if (!pauses.any()) return false;
    std::set<std::string> ended;
    if (!interface.empty()) {
        ended = {interface};
    } else {
        ended = pauses.interfaces;
        ended.insert(std::string());
    }
    SIEVE_ASSIGN(const UniqueFd folder, open_folder(state));
    bool some = false;
    for (const std::string& one : ended) {
        const std::string name = name_of(one);
        if (::unlinkat(folder.get(), name.c_str(), 0) == 0 ||
            (errno == EISDIR && ::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) == 0))
            some = true;
        else if (errno != ENOENT)
            return fault(state, fmt::format("{} cannot be removed", printable(name)), errno);
    }
    SIEVE_TRY(sync_folder(state, folder));
    return some;
}

} // namespace sieve::service
