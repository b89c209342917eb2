// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What runs at the XDP hook of an interface.
#pragma once

#include "libsieve/kernel/hooks/hook.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::kernel::xdp {

[[nodiscard]] Result<Hook> read_hook(const Interface& interface);

} // namespace sieve::kernel::xdp
