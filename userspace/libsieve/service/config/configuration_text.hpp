// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A Configuration as TOML with every default written out; read_configuration() makes the same of it again.
#pragma once

#include <string>

#include "libsieve/service/config/values/configuration.hpp"

namespace sieve::service {

[[nodiscard]] std::string configuration_text(const Configuration& configuration);

// The same as JSON: the tables and keys of the TOML, those without a value left out.
[[nodiscard]] std::string configuration_json(const Configuration& configuration);

// All that decides which filter is built of the same list, and how it is guarded, as text: two sets with the
// same text and the same list need no second build.
[[nodiscard]] std::string build_text(const SetConfiguration& set);

// What becomes of a match, as text.
[[nodiscard]] std::string action_text(const SetConfiguration& set);
// The digest of that (SetRecord::action). Where the set does not say its action, its interfaces do.
[[nodiscard]] std::string action_digest(const Configuration& configuration, const SetConfiguration& set);

} // namespace sieve::service
