// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A parsed answer of CrowdSec as a file of records, so that whoever gets it from an untrusted parser need not
// parse.
#pragma once

#include "libsieve/service/lists/decisions.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// Writes to an empty file.
[[nodiscard]] Status write_decision_file(const Decisions& decisions, int to);

// Reads it back, from its beginning. bad_input unless the file is exactly such a list.
[[nodiscard]] Result<Decisions> read_decision_file(int from);

} // namespace sieve::service::live
