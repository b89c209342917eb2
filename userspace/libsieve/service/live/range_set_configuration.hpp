// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The set beside a set that follows a stream: it holds the stream's prefixes, which cannot be changed in
// place.
//
// A set NAME that follows CrowdSec has a range set NAME-ranges. Nobody configures it; it comes right after
// NAME wherever NAME is used, with the same action, key and guards.
#pragma once

#include <string>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

inline constexpr char range_set_suffix[] = "-ranges";

[[nodiscard]] std::string range_set_name(const std::string& set);

// The configuration with the range sets of all its sets. bad_input if a range set's name is too long or is
// that of another set, or if an interface has too many sets with them.
[[nodiscard]] Result<Configuration> with_range_sets(Configuration configuration);

// Whether the set is a range set in such a configuration: it has no source of its own.
[[nodiscard]] bool is_range_set(const Configuration& configuration, const std::string& set);

} // namespace sieve::service::live
