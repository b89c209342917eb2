// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Asks CrowdSec's local API once for decisions.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/lists/decisions.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/service/sources/source_schedule.hpp"

namespace sieve::service::live {

// Where the API is asked.
[[nodiscard]] std::string stream_url(const CrowdsecSpec& source, SourceSchedule::Fetch fetch);

// Asks. The whole list has no deletions. Blocks for as long as the limits allow.
[[nodiscard]] tl::expected<Decisions, GatherFailure> fetch_decisions(const CrowdsecSpec& source,
                                                                     SourceSchedule::Fetch fetch, Time now,
                                                                     const SandboxSettings& settings);

} // namespace sieve::service::live
