// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How long operations report progress; the programs decide what to show.
#pragma once

#include <functional>
#include <string_view>

namespace sieve {

// Called from one thread at a time, with the name of the stage and the share of it that is done, in [0, 1].
using Progress = std::function<void(std::string_view stage, double share)>;

} // namespace sieve
