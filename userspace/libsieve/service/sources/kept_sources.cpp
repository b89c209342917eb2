// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/kept_sources.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace sieve::service {

std::optional<KeptContent> kept_content(const std::string& set, const std::string& identity,
                                        const std::vector<SourceProvenance>& sources,
                                        const StateDirectory& state, const std::string& origin) {
    const auto found = std::ranges::find(sources, origin, &SourceProvenance::source);
    if (found == sources.end()) return std::nullopt;
    Result<UniqueFd> content = state.open_source(set, identity, found->digest);
    if (!content) return std::nullopt;
    return KeptContent{std::move(*content), *found};
}

void keep_contents(const std::string& set, const std::string& identity, const SourceVisit& visit,
                   const std::vector<SourceProvenance>& sources, const StateDirectory& state) {
    std::set<std::string> digests;
    for (const SourceProvenance& source : sources) digests.insert(source.digest);
    for (std::size_t place = 0; place < visit.contents.size(); place++)
        if (visit.contents[place])
            (void)state.keep_source(set, identity, sources[place].digest, visit.contents[place]->get());
    state.forget_sources_but(set, identity, std::move(digests));
}

} // namespace sieve::service
