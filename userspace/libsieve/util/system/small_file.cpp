// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/small_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

constexpr std::size_t one_read = std::size_t{64} << 10;

tl::unexpected<Error> unreadable(const std::string& path, int error) {
    return failure(error == EACCES || error == EPERM ? ErrorKind::not_permitted : ErrorKind::kernel_refused,
                   fmt::format("{}: cannot be read: {}", printable(path), errno_text(error)));
}

} // namespace

Result<std::string> read_small_file(int file, const std::string& path, std::size_t most) {
    std::string text;
    for (std::size_t size = 0;;) {
        text.resize(size + std::min(one_read, most - size + 1)); // one more tells a longer file
        const ssize_t got = ::read(file, text.data() + size, text.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return unreadable(path, errno);
        size += static_cast<std::size_t>(got);
        if (size > most)
            return bad_input(fmt::format("{}: has more than {} bytes, the limit", printable(path), most));
        text.resize(size);
        if (got == 0) return text;
    }
}

Result<std::optional<std::string>> read_small_file(const std::string& path, std::size_t most) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
    struct stat info {};
    // A socket cannot be opened.
    const bool is_open = file && ::fstat(file.get(), &info) == 0;
    if (!is_open && errno != ENXIO) return unreadable(path, errno);
    if (!is_open || !S_ISREG(info.st_mode))
        return bad_input(fmt::format("{}: is no regular file", printable(path)));
    SIEVE_ASSIGN(std::string text, read_small_file(file.get(), path, most));
    return std::optional(std::move(text));
}

std::string small_file_or_nothing(const std::string& path, std::size_t most) {
    return read_small_file(path, most).value_or(std::nullopt).value_or("");
}

} // namespace sieve
