// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Sets that change together or not at all. Their sources are files behind one symbolic link, which a node of
// a fleet has lead to the next manifest (fleet/node/node_store.hpp), so one rename changes all of them.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/state/source_provenance.hpp"

namespace sieve::service {

// Whether all sources of the set are behind the link of this state directory: a fleet published its list,
// whose digest was checked, and the signature of the manifest that names the digest.
[[nodiscard]] bool is_published(const SetConfiguration& set, const std::string& state_directory);

// Whether a source of the set is behind the link, though nothing may be there yet.
[[nodiscard]] bool follows_fleet(const SetConfiguration& set, const std::string& state_directory);

// Whether such a set does not change with its manifest: what to say of it. Nothing for any other set.
[[nodiscard]] std::optional<std::string> parts_with_its_manifest(const SetConfiguration& set,
                                                                 const std::string& state_directory);

// Whether the fleet says so of all of that list: it was in force here before, or its publisher goes back to
// it. Then its size is no surprise.
[[nodiscard]] bool is_known_to_fleet(const SetConfiguration& set, const std::string& state_directory);

// Whether the link leads to the lists before, since one of the new ones was refused, and these are still
// wanted.
[[nodiscard]] bool has_gone_back(const std::string& state_directory);

class SetsTogether {
  public:
    // The sets with a source that is behind the link at this moment. Sets that change in place are not among
    // them: no cycle asks their sources.
    [[nodiscard]] static SetsTogether of(const Configuration& configuration);

    [[nodiscard]] bool has(const std::string& set) const { return sets_.contains(set); }
    // These sets, and if one of them is among the sets together, all of those.
    [[nodiscard]] std::set<std::string> completed(std::set<std::string> sets) const;
    // Whether the link is still the one that of() saw.
    [[nodiscard]] bool still() const;

  private:
    std::string link_;
    FileStamp stamp_{};
    std::set<std::string> sets_;
};

} // namespace sieve::service
