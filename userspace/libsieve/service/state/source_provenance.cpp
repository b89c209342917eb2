// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/source_provenance.hpp"

#include <algorithm>

namespace sieve::service {

FileStamp stamp_of(const struct stat& info) {
    return {info.st_dev, info.st_ino,
            std::int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + info.st_ctim.tv_nsec};
}

std::set<std::string> identities_of(const std::vector<SourceProvenance>& sources) {
    std::set<std::string> all;
    for (const SourceProvenance& source : sources) all.insert(source.source);
    return all;
}

bool has_said(const std::vector<SourceProvenance>& sources, const std::string& origin) {
    const auto found = std::ranges::find(sources, origin, &SourceProvenance::source);
    return found != sources.end() && !found->digest.empty();
}

bool has_first_answer(const std::vector<SourceProvenance>& before, const std::vector<SourceProvenance>& now) {
    return std::ranges::any_of(
        before, [&](const SourceProvenance& one) { return one.digest.empty() && has_said(now, one.source); });
}

} // namespace sieve::service
