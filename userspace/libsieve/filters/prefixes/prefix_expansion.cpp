// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefixes/prefix_expansion.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <sieve/prefix.h>

#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

constexpr std::uint32_t bits = address_bits;
constexpr std::uint32_t v4_bits = 32;

std::string lengths_text(const LengthCounts& counts, std::uint32_t shift) {
    std::string text;
    for (std::uint32_t length = 0; length <= bits; length++) {
        if (counts[length] == 0) continue;
        if (!text.empty()) text += ", ";
        text += std::to_string(std::llround(counts[length])) + " of /" + std::to_string(length - shift);
    }
    return text;
}

// The fewest probes that keep the filter cheap, else those that make the fewest keys.
std::size_t fewest_cheap(const std::vector<double>& keys) {
    std::size_t chosen = 0;
    while (chosen + 1 < keys.size() && keys[chosen] > static_cast<double>(cheap_keys) &&
           keys[chosen + 1] < keys[chosen])
        chosen++;
    return chosen;
}

} // namespace

LengthChoices choose_lengths(const LengthCounts& counts, std::uint32_t max_probes,
                             std::span<const std::uint32_t> required) {
    constexpr double never = std::numeric_limits<double>::infinity();
    std::uint32_t longest = bits;
    while (longest > 0 && counts[longest] == 0) longest--;
    for (const std::uint32_t length : required) longest = std::max(longest, length);
    // step[i][l]: number of prefixes when lengths i+1 .. l are all expanded to l. i = -1 means that there is
    // no shorter length; it is kept at row 0.
    const auto step = [&](std::uint32_t from, std::uint32_t to) {
        if (std::any_of(required.begin(), required.end(),
                        [&](std::uint32_t length) { return length >= from && length < to; }))
            return never;
        double sum = 0;
        for (std::uint32_t length = from; length <= to; length++)
            sum += std::ldexp(counts[length], static_cast<int>(to - length));
        return sum;
    };
    LengthChoices choices;
    std::vector<std::array<double, bits + 1>> best(max_probes);
    std::vector<std::array<std::uint32_t, bits + 1>> before(max_probes);
    for (std::uint32_t to = 0; to <= longest; to++) best[0][to] = step(0, to);
    for (std::uint32_t k = 1; k < max_probes; k++)
        for (std::uint32_t to = 0; to <= longest; to++) {
            best[k][to] = never;
            for (std::uint32_t from = 0; from < to; from++) {
                const double keys = best[k - 1][from] + step(from + 1, to);
                if (keys < best[k][to]) {
                    best[k][to] = keys;
                    before[k][to] = from;
                }
            }
        }
    for (std::uint32_t k = 0; k < max_probes; k++) {
        if (k > longest) break;
        std::vector<std::uint32_t> lengths{longest};
        for (std::uint32_t left = k; left > 0; left--) lengths.push_back(before[left][lengths.back()]);
        std::reverse(lengths.begin(), lengths.end());
        choices.keys.push_back(best[k][longest]);
        choices.lengths.push_back(std::move(lengths));
    }
    return choices;
}

Result<ChosenProbes>
choose_probes(const LengthCounts (&counts)[SIEVE_FAMILIES], const PrefixLimits& limits,
              const std::function<std::size_t(const std::vector<double>& keys)>& choose) {
    ChosenProbes chosen;
    double total = 0;
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        const std::vector<std::uint32_t>& required = limits.lengths[family];
        if (required.empty() && std::all_of(counts[family].begin(), counts[family].end(),
                                            [](double count) { return count == 0; }))
            continue;
        const LengthChoices choices = choose_lengths(counts[family], limits.max_probes, required);
        const std::size_t choice = choose(choices.keys);
        if (std::isinf(choices.keys[choice]))
            return invalid_request(
                fmt::format("{} lengths of IPv{} prefixes are required, and {} allowed; allow more with "
                            "--max-probes (at most {})",
                            required.size(), family == SIEVE_FAMILY_V4 ? 4 : 6,
                            counted(limits.max_probes, "probe is", "probes are"), SIEVE_MAX_PROBES));
        total += choices.keys[choice];
        const auto& lengths = choices.lengths[choice];
        chosen.probes.count[family] = static_cast<__u8>(lengths.size());
        std::copy(lengths.begin(), lengths.end(), chosen.probes.length[family]);
    }
    if (total > static_cast<double>(limits.max_keys))
        return bad_input(fmt::format(
            "the prefixes do not fit: expanded to {} for each family they are {:.3g} keys, the limit "
            "is {}; allow more "
            "with --max-probes (at most {}) or --max-keys. After aggregation there are, IPv4: {}; IPv6: {}",
            counted(limits.max_probes, "length"), total, limits.max_keys, SIEVE_MAX_PROBES,
            lengths_text(counts[0], bits - v4_bits), lengths_text(counts[1], 0)));
    chosen.keys = static_cast<std::uint64_t>(total);
    return chosen;
}

Result<PrefixPlan> plan_prefixes(std::vector<AddressRange> ranges, const PrefixLimits& limits) {
    if (limits.max_probes < 1 || limits.max_probes > SIEVE_MAX_PROBES)
        return invalid_request(
            fmt::format("{} probes, expected 1 to {}", limits.max_probes, SIEVE_MAX_PROBES));
    PrefixPlan plan;
    static_cast<AddressSet&>(plan) = address_set_of(std::move(ranges));
    LengthCounts counts[SIEVE_FAMILIES] = {};
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        for (const AddressRange& range : plan.members[family])
            split_into_prefixes(range, [&](uint128, std::uint32_t length) { counts[family][length]++; });
    SIEVE_ASSIGN(const ChosenProbes chosen, choose_probes(counts, limits, fewest_cheap));
    plan.probes = chosen.probes;
    plan.keys = chosen.keys;
    return plan;
}

void expand_prefixes(const PrefixPlan& plan,
                     const std::function<void(std::uint64_t, std::uint64_t, std::uint32_t)>& visit) {
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        for (const AddressRange& range : plan.members[family]) {
            const auto* lengths = plan.probes.length[family];
            split_into_prefixes(range, [&](uint128 first, std::uint32_t length) {
                const auto* target = std::lower_bound(lengths, lengths + plan.probes.count[family], length);
                assert(target != lengths + plan.probes.count[family]);
                const std::uint64_t copies = std::uint64_t{1} << (*target - length);
                for (std::uint64_t i = 0; i < copies; i++) {
                    const uint128 address =
                        *target == 0 ? 0 : first + (static_cast<uint128>(i) << (bits - *target));
                    visit(static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address),
                          *target);
                }
            });
        }
}

} // namespace sieve
