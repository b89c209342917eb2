// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/replace_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include <fmt/core.h>

#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::watching {

namespace {

tl::unexpected<Error> fault(const std::string& path, const std::string& what) {
    return bad_input(fmt::format("{}: {}", printable(path), what));
}

tl::unexpected<Error> cannot_be_written(const std::string& path) {
    return fault(path, "cannot be written: " + errno_text(errno));
}

} // namespace

Status replace_file(const std::string& path, std::string_view content, mode_t mode) {
    const std::string beside = path + ".new";
    // What a process that was killed left behind, or a link that somebody put there.
    (void)::unlink(beside.c_str());
    const UniqueFd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file) return cannot_be_written(path);
    Status done = write_all(file.get(), content);
    if (!done)
        done = fault(path, done.error().message);
    else if (::rename(beside.c_str(), path.c_str()) != 0)
        done = cannot_be_written(path);
    if (!done) (void)::unlink(beside.c_str());
    return done;
}

} // namespace sieve::service::watching
