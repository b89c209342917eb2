// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Describes what `apply` would do, or has done, in words and as JSON.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "libsieve/service/lists/list_change.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/reconcile/reconcile.hpp"

namespace sieve::cli {

// The hook's title, then one indented line for each thing that happens there. Empty if nothing happens.
// `done` chooses the tense.
[[nodiscard]] std::string describe(const service::HookPlan& plan, bool done);
[[nodiscard]] nlohmann::json to_json(const service::HookPlan& plan);

// "set bad: 3 entries, 1 added, 0 gone", then the first of these entries, one on each line.
[[nodiscard]] std::string describe(const std::string& set, std::uint64_t entries,
                                   const service::ListChange& change);
[[nodiscard]] nlohmann::json to_json(const service::ListChange& change);

// What the state directory remembers of a set.
[[nodiscard]] nlohmann::json to_json(const service::SetTimes& times);
[[nodiscard]] nlohmann::json to_json(const service::SetRecord& record);

} // namespace sieve::cli
