// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/choice.hpp"

#include <atomic>
#include <cmath>
#include <tuple>
#include <vector>

#include <sieve/exact_table.h>

#include "libsieve/filters/kinds/exact/exact_kind.hpp"
#include "libsieve/filters/kinds/plan.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/first_use.hpp"

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

std::span<const KindFigures> kind_figures() {
    // At 16 bits per key, or at the kind's own size.
    static std::atomic<const std::vector<KindFigures>*> known = nullptr;
    return first_use(known, [] {
        return std::vector<KindFigures>{
            {&kind_of(SIEVE_KIND_BLOCKED), 4.0, 2, 0},    {&kind_of(SIEVE_KIND_BLOOM), 3.2, 16, 0},
            {&kind_of(SIEVE_KIND_DLEFT64), 3.6, 2, 1e-5}, {&kind_of(SIEVE_KIND_DLEFT128), 4.1, 2, 1e-7},
            {&kind_of(SIEVE_KIND_DDLCBF), 9.0, 4, 0},     {&kind_of(SIEVE_KIND_XORSAT), 0.7, 1.2, 2.7e-10},
            {&kind_of(SIEVE_KIND_RANGES), 0, 2, 0},       {&kind_of(SIEVE_KIND_EXACT), 0, 2, 0},
        };
    });
}

const FilterKind& choose_kind(const KindOptions& options, const SizeWish& size) {
    const KindFigures* best = nullptr;
    // Lines beyond the recommended number, then bits wasted.
    const auto cost = [&](const KindFigures& figures) {
        const double lines =
            figures.lines * figures.kind->choices_of(options) / figures.kind->facts().choices.standard;
        return std::tuple(lines > most_lines_recommended ? lines : 0, figures.excess_bits);
    };
    for (const KindFigures& figures : kind_figures()) {
        const FilterKind& kind = *figures.kind;
        if (kind.exact() != nullptr || !takes(kind, options) || !is_made_for(figures, size)) continue;
        if (best == nullptr || cost(figures) < cost(*best)) best = &figures;
    }
    return best != nullptr ? *best->kind : kind_of(SIEVE_KIND_BLOCKED); // of the most options
}

std::uint64_t bytes_of_exact(std::uint64_t ipv4, std::uint64_t ipv6) {
    return exact_kind.lines_for(ipv4, ipv6) * sizeof(sieve_line);
}

} // namespace sieve
