// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/watching/manager.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace sieve::service::watching {

namespace {

using nlohmann::json;

constexpr std::size_t longest_note = 8192;

Result<std::string> note_path(const std::string& folder) {
    SIEVE_ASSIGN(std::string name, kernel::Lock::file_name());
    return folder + "/" + name.substr(0, name.rfind('.')) + ".manager";
}

std::optional<Manager> read_note(int file) {
    std::array<char, longest_note> text{};
    const ssize_t length = ::pread(file, text.data(), text.size(), 0);
    if (length <= 0) return std::nullopt;
    try {
        const json note = json::parse(text.data(), text.data() + length);
        return Manager{.pid = note.at("pid").get<pid_t>(),
                       .started = note.at("started").get<std::int64_t>(),
                       .listen = note.at("listen").get<std::string>(),
                       .state = note.at("state").get<std::string>(),
                       .version = note.at("version").get<std::string>()};
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

std::string text_of(const Manager& manager) {
    const json note = {{"pid", manager.pid},
                       {"started", manager.started},
                       {"listen", manager.listen},
                       {"state", manager.state},
                       {"version", manager.version}};
    return note.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
}

bool same_file(int file, const std::string& path) {
    struct stat open {
    }, named{};
    return ::fstat(file, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

bool runs(const std::optional<Manager>& manager) {
    return manager && (::kill(manager->pid, 0) == 0 || errno != ESRCH);
}

} // namespace

Result<ManagerNote> ManagerNote::leave(const Manager& manager, const std::string& folder,
                                       const NoteWait& wait) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + wait.patience;
    bool waited = false;
    SIEVE_ASSIGN(const std::string path, note_path(folder));
    const auto refused = [&path](int error) {
        return kernel_refused(fmt::format("the manager's note {}: {}", path, errno_text(error)));
    };
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return refused(errno);
    for (;;) {
        UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file) return refused(errno);
        if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK) return refused(errno);
            const auto other = read_note(file.get());
            if (!runs(other) && Clock::now() < deadline) {
                if (!std::exchange(waited, true) && wait.begun) wait.begun();
                std::this_thread::sleep_for(std::chrono::milliseconds(5)); // flock has no time limit
                continue;
            }
            return failure(ErrorKind::busy,
                           other
                               ? fmt::format("process {} manages this network namespace already", other->pid)
                               : std::string("another process manages this network namespace already"));
        }
        // Its previous holder may have removed the file between our open and our lock.
        if (!same_file(file.get(), path)) continue;
        const std::string text = text_of(manager);
        if (::ftruncate(file.get(), 0) != 0 ||
            ::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
            return refused(errno);
        return ManagerNote(path, std::move(file));
    }
}

ManagerNote::~ManagerNote() {
    if (held_) (void)::unlink(path_.c_str());
}

std::optional<Manager> find_manager(const std::string& folder) {
    const auto path = note_path(folder);
    if (!path) return std::nullopt;
    const UniqueFd file(::open(path->c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file) return std::nullopt;
    // A lock that we get is one that nobody holds.
    if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
    return read_note(file.get());
}

} // namespace sieve::service::watching
