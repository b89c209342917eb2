// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/memory_file.hpp"

#include <sys/mman.h>

#include <cerrno>

#include <fmt/core.h>

namespace sieve {

Result<UniqueFd> make_memory_file(const char* name) {
    UniqueFd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file) return file;
    return failure(ErrorKind::out_of_memory, fmt::format("no file in memory: {}", errno_text(errno)));
}

} // namespace sieve
