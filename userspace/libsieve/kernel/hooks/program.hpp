// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A loaded program, ours or another's.
#pragma once

#include <cstdint>
#include <string>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

struct Program {
    std::uint32_t id = 0;
    std::string name;
    UniqueFd fd;
};

// The program of that id.
[[nodiscard]] Result<Program> open_program(std::uint32_t id);

// Whether the kernel has a program of that id. Error: it does not tell, such as for want of a descriptor.
[[nodiscard]] Result<bool> has_program(std::uint32_t id);

// The id of a loaded program.
[[nodiscard]] Result<std::uint32_t> program_id(int fd);

} // namespace sieve::kernel
