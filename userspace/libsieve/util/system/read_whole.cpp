// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/read_whole.hpp"

#include <unistd.h>

#include <cerrno>

namespace sieve {

bool read_whole(int from, void* to, std::size_t bytes) {
    for (auto* next = static_cast<char*>(to); bytes > 0;) {
        const ssize_t got = ::read(from, next, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        next += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

} // namespace sieve
