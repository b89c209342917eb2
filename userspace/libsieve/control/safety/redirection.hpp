// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whether packets can reach the targets that sets redirect them to. The program cannot know: its helper says
// only that the target is in the map. The kernel drops later what it cannot deliver, and does not tell the
// program. So control checks before a table goes live. docs/hooks.md says why it sends no test frame.
#pragma once

#include <span>
#include <vector>

#include "libsieve/control/access/interfaces.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// Where redirected packets come from.
struct RedirectSource {
    kernel::Interface interface;
    kernel::HookPoint point = kernel::HookPoint::xdp;
    kernel::Mode mode = kernel::Mode::native; // of the XDP hook
};

// True if one of the sets redirects.
[[nodiscard]] bool redirects(std::span<const SetSpec> sets);

// The mode that XDP will have there: that of the running program, or else the chosen mode, or else the best
// that the driver can do.
[[nodiscard]] Result<kernel::Mode> expected_mode(Interfaces& kernel, const kernel::Hook& hook,
                                                 kernel::ModeChoice choice);

// Refuses a target that cannot deliver: the interface itself (invalid_request), an interface that is down or
// whose packets begin with another header (kernel_refused), and in native mode an interface whose driver
// cannot send (no_native_mode).
[[nodiscard]] Status check_targets(Interfaces& kernel, const RedirectSource& source,
                                   std::span<const SetSpec> sets);

// Warnings about targets that were not refused and may still not deliver.
[[nodiscard]] std::vector<Warning> target_warnings(Interfaces& kernel, const RedirectSource& source,
                                                   std::span<const SetSpec> sets);

} // namespace sieve::control
