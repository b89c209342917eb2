// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keeps the hit marks of a set whose filter is replaced: an entry that stays keeps its mark.
#pragma once

#include <functional>
#include <span>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// Calls replace(), which puts the table in force in which the sets that come have the filters of `fresh`, and
// returns its result. Where a filter with marks follows one of the same name and fields, its keys get the
// marks of that one: before the change, and again when no packet uses the old filter any more. So a mark gets
// lost in two cases only: the controller dies in between, or a change on probation is taken back, for hits
// that came meanwhile. A table that cannot be read is no reason not to replace it: then its marks are lost.
// The caller holds the lock.
[[nodiscard]] Status replace_keeping_hits(Kernel& kernel, const kernel::Hook& hook,
                                          std::span<const ReadySet> fresh,
                                          const std::function<Status()>& replace);

} // namespace sieve::control
