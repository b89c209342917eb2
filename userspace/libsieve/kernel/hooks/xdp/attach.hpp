// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Attaching to the XDP hook: through libxdp's dispatcher, or alone.
#pragma once

#include "libsieve/kernel/hooks/attach.hpp"

namespace sieve::kernel::xdp {

Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options);

[[nodiscard]] Status detach(const Hook& hook);

} // namespace sieve::kernel::xdp
