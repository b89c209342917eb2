// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A snapshot as JSON: what the status page says, for programs. docs/watching.md describes it.
#pragma once

#include <string>

#include "libsieve/service/monitor/snapshot.hpp"

namespace sieve::service::watching {

[[nodiscard]] std::string status_json(const Snapshot& snapshot);

} // namespace sieve::service::watching
