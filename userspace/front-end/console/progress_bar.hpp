// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How far long work has come, on standard error.
#pragma once

#include "libsieve/util/parallel/progress.hpp"

namespace sieve::cli {

// A bar that appears if standard error is a terminal, `quiet` is not set, and the work takes over a second.
Progress progress_bar(bool quiet);

} // namespace sieve::cli
