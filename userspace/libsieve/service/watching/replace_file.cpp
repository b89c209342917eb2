// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/watching/replace_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include <fmt/core.h>

#include "libsieve/util/printable.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::service::watching {

namespace {

tl::unexpected<Error> fault(const std::string& path, const char* doing, int error) {
    return bad_input(fmt::format("{}: {}: {}", printable(path), doing, errno_text(error)));
}

// errno, or 0.
int write_all(int file, std::string_view content) {
    while (!content.empty()) {
        const ssize_t written = ::write(file, content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

} // namespace

Status replace_file(const std::string& path, std::string_view content, mode_t mode) {
    const std::string beside = path + ".new";
    // What a process that was killed left behind, or a link that somebody put there.
    (void)::unlink(beside.c_str());
    const UniqueFd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file) return fault(path, "cannot be written", errno);
    int error = write_all(file.get(), content);
    if (error == 0 && ::rename(beside.c_str(), path.c_str()) != 0) error = errno;
    if (error == 0) return {};
    (void)::unlink(beside.c_str());
    return fault(path, "cannot be written", error);
}

} // namespace sieve::service::watching
