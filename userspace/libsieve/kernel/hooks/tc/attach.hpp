// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Attaching to tc's hooks: a filter of the clsact queueing discipline, in direct-action mode.
#pragma once

#include "libsieve/kernel/hooks/attach.hpp"

namespace sieve::kernel::tc {

// Our filter's handle among those of its priority. An operator recognises our filter in `tc filter` by it.
inline constexpr std::uint32_t our_handle = 0x51e7e;

// Adds our filter at the priority that the options' rank names, and clsact if it is not there yet. Other
// filters are asked before or after ours, by their priorities. Fails if that priority belongs to filters of
// another kind, or if another controller has put a program of ours there meanwhile.
Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options);

// Removes our filter. clsact stays: removing clsact would also remove any filter that another tool adds at
// that moment. clsact without filters costs a packet next to nothing.
[[nodiscard]] Status detach(const Hook& hook);

} // namespace sieve::kernel::tc
