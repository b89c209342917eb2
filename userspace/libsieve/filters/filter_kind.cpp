// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/filter_kind.hpp"

#include <fmt/core.h>

namespace sieve {

Result<std::unique_ptr<ChangeableFilter>> FilterKind::open_for_change(const sieve_lookup&,
                                                                      std::span<sieve_line>) const {
    return invalid_request(fmt::format("keys of kind {} cannot be changed one by one", facts_.name));
}

std::vector<double> FilterKind::expected_rates(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                               std::uint64_t keys, std::uint32_t parts) const {
    sieve_lookup part = lookup;
    part.buckets = lookup.buckets / parts;
    part.shard_bits = 0; // a part need not be whole shards, and its own lines tell its rate well enough
    const std::uint64_t subtables = filter.size() / lookup.buckets;
    std::vector<double> rates;
    std::vector<sieve_line> lines;
    for (std::uint32_t p = 0; p < parts; p++) {
        lines.clear();
        for (std::uint64_t s = 0; s < subtables; s++) {
            const auto taken =
                filter.subspan(s * lookup.buckets + std::uint64_t{p} * part.buckets, part.buckets);
            lines.insert(lines.end(), taken.begin(), taken.end());
        }
        rates.push_back(expected_rate(part, lines, keys / parts));
    }
    return rates;
}

std::vector<KindOptions> FilterKind::forms() const {
    return {{.kind = facts_.number, .choices = facts_.choices.standard}};
}

std::string FilterKind::count_choices(std::uint32_t count) const {
    return fmt::format("{} {}", count, count == 1 ? facts_.choices.one : facts_.choices.many);
}

} // namespace sieve
