// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keeps the text of lists away from a process that has privileges.
#pragma once

namespace sieve::cli {

// From now on, a child without privileges reads every list of this process, if it has privileges.
void confine_lists();

} // namespace sieve::cli
