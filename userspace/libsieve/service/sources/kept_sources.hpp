// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the servers and commands of a set said last, in the state directory: for the visit at which one of
// them fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libsieve/service/sources/sandbox.hpp"
#include "libsieve/service/state/source_provenance.hpp"
#include "libsieve/service/state/state_directory.hpp"

namespace sieve::service {

// What the origin said last, which is one of `sources`; nothing if that is not kept. `identity` is that of
// the image, or beside_stream.
[[nodiscard]] std::optional<KeptContent> kept_content(const std::string& set, const std::string& identity,
                                                      const std::vector<SourceProvenance>& sources,
                                                      const StateDirectory& state, const std::string& origin);

// For the visits to come. What cannot be written is asked for again, as if it had never been kept. What the
// record has stays until the next visit, since these sources may never come into the record.
void keep_contents(const std::string& set, const std::string& identity, const SourceVisit& visit,
                   const std::vector<SourceProvenance>& sources, const StateDirectory& state);

} // namespace sieve::service
