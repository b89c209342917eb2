// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/with_fleet.hpp"

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace sieve::cli {

void become_program_with_fleet(char** argv) {
    std::error_code error;
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return;
    const std::filesystem::path other =
        own.parent_path().parent_path() / "lib/xdp-sieve/fleet" / own.filename();
    ::execv(other.c_str(), argv);
}

} // namespace sieve::cli
