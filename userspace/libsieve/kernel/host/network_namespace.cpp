// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/network_namespace.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel {

Result<std::uint64_t> network_namespace() {
    struct stat info {};
    if (::stat("/proc/thread-self/ns/net", &info) != 0)
        return refusal("asking for the network namespace (/proc/thread-self/ns/net)", errno);
    return info.st_ino;
}

} // namespace sieve::kernel
