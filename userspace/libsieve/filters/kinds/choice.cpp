// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/choice.hpp"

#include <cmath>
#include <tuple>

#include <sieve/exact_table.h>

#include "libsieve/filters/kinds/exact/exact_kind.hpp"
#include "libsieve/filters/kinds/plan.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve {

namespace {

bool takes(const FilterKind& kind, const KindOptions& options) {
    const KindFacts& facts = kind.facts();
    if (options.choices && (*options.choices < facts.choices.least || *options.choices > facts.choices.most))
        return false;
    if (options.rounds && *options.rounds > 0 && kind.rounds(Effort::best, kind.choices_of(options)) == 0)
        return false;
    return (!options.alpha || facts.takes_alpha) && (!options.hashes || facts.takes_hashes);
}

// More bits than for the lowest rate are wasted, but other kinds waste as many: only this many bits later are
// they the more accurate ones.
constexpr double bits_of_others = 12;

bool is_made_for(const KindFigures& figures, const SizeWish& size) {
    if (size.fpr) return *size.fpr >= figures.least_rate;
    if (!size.bits_per_key) return true;
    return *size.bits_per_key <= std::log2(1 / figures.least_rate) + bits_of_others;
}

} // namespace

const FilterKind& choose_kind(const KindOptions& options, const SizeWish& size) {
    const FilterKind* best = nullptr;
    // Lines beyond the recommended number, then bits wasted.
    const auto cost = [&](const FilterKind& kind) {
        const KindFacts& facts = kind.facts();
        const double lines = facts.figures.lines * kind.choices_of(options) / facts.choices.standard;
        return std::tuple(lines > most_lines_recommended ? lines : 0, facts.figures.excess_bits);
    };
    for (const FilterKind* kind : hashing_kinds()) {
        if (!takes(*kind, options) || !is_made_for(kind->facts().figures, size)) continue;
        if (best == nullptr || cost(*kind) < cost(*best)) best = kind;
    }
    return best != nullptr ? *best : kind_of(SIEVE_KIND_BLOCKED); // of the most options
}

std::uint64_t bytes_of_exact(std::uint64_t ipv4, std::uint64_t ipv6) {
    return exact_kind.lines_for(ipv4, ipv6) * sizeof(sieve_line);
}

} // namespace sieve
