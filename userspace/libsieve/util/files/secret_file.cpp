// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/core.h>

#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

constexpr std::size_t longest_line = 1024;

tl::unexpected<Error> fault(const std::string& path, const std::string& found, const std::string& what) {
    return bad_input(fmt::format("{}: {}, expected {}", printable(path), found, what));
}

} // namespace

Result<std::string> read_secret_file(const std::string& path, const std::string& what, std::size_t most) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0)
        return fault(path, "cannot be read: " + errno_text(errno), what);
    if (!S_ISREG(info.st_mode)) return fault(path, "is no regular file", what);
    if ((info.st_uid != 0 && info.st_uid != ::geteuid()) ||
        (info.st_mode & (S_IWGRP | S_IWOTH | S_IROTH)) != 0)
        return bad_input(
            fmt::format("{}: others may read or write it (owner {}, mode {:o}), and it holds {}; "
                        "expected owner root, mode 600 or 640",
                        printable(path), info.st_uid, info.st_mode & 07777, what));
    Result<std::string> text = read_small_file(file.get(), path, most);
    if (!text && text.error().kind == ErrorKind::bad_input) text.error().message += ", expected " + what;
    if (text && text->empty()) return fault(path, "empty", what);
    return text;
}

Result<std::string> read_secret_line(const std::string& path, const std::string& what) {
    SIEVE_ASSIGN(std::string line, read_secret_file(path, what, longest_line));
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    if (line.empty()) return fault(path, "empty", what);
    if (line.find('\n') != std::string::npos) return fault(path, "more than one line", what);
    if (has_control(line)) return fault(path, "a control character", what);
    return line;
}

} // namespace sieve
