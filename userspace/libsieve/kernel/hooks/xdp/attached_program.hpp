// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What runs at the XDP hook of an interface.
#pragma once

#include "libsieve/kernel/hooks/hook.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel::xdp {

[[nodiscard]] Result<Hook> read_hook(const Interface& interface);

// The id of the program that runs there in that mode; 0: none. Error: the kernel does not say, as for an
// interface that has gone.
[[nodiscard]] Result<std::uint32_t> program_in_mode(const Interface& interface, Mode mode);

} // namespace sieve::kernel::xdp
