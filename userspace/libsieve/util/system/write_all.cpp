// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/write_all.hpp"

#include <unistd.h>

#include <cerrno>

#include <fmt/core.h>

namespace sieve {

int write_whole(int to, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(to, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return 0;
}

Status write_all(int to, std::string_view bytes) {
    if (const int error = write_whole(to, bytes); error != 0)
        return bad_input(fmt::format("cannot be written: {}", errno_text(error)));
    return {};
}

} // namespace sieve
