// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/reports/joint_report.hpp"

#include <fmt/format.h>

#include "front-end/console/format.hpp"

namespace sieve::cli {

nlohmann::json to_json(const control::Joined& joined) {
    return {
        {"sets", joined.sets},
        {"keys", joined.filter.keys()},
        {"bytes", joined.filter.lines().size_bytes()},
        {"map_id", joined.maps.filter_id},
        {"fpr", {{"predicted", joined.filter.predicted_rate()}, {"expected", joined.filter.expected_rate()}}},
        {"exact", joined.filter.exact()}};
}

std::string describe(const control::Joined& joined) {
    return fmt::format("one lookup for {}: {}, {}, {}", fmt::join(joined.sets, ", "),
                       format_counted(joined.filter.keys(), "key"),
                       format_bytes(joined.filter.lines().size_bytes()),
                       joined.filter.exact()
                           ? "exact"
                           : fmt::format("FPR {} for each set", format_rate(joined.filter.expected_rate())));
}

} // namespace sieve::cli
