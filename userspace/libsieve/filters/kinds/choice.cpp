// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/choice.hpp"

#include <array>
#include <tuple>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/plan.hpp"

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

} // namespace

std::span<const KindFigures> kind_figures() {
    // At 16 bits per key, or at the kind's own size.
    static const auto figures = std::to_array<KindFigures>({
        {&kind_of(SIEVE_KIND_BLOCKED), 4.0, 2},
        {&kind_of(SIEVE_KIND_BLOOM), 3.2, 16},
        {&kind_of(SIEVE_KIND_DLEFT64), 3.6, 2},
        {&kind_of(SIEVE_KIND_DLEFT128), 4.1, 2},
        {&kind_of(SIEVE_KIND_DDLCBF), 9.0, 4},
        {&kind_of(SIEVE_KIND_XORSAT), 0.7, 1.2},
        {&kind_of(SIEVE_KIND_RANGES), 0, 2},
    });
    return figures;
}

const FilterKind& choose_kind(const KindOptions& options, bool prefixes) {
    const KindFigures* best = nullptr;
    // Lines beyond the recommended number, then bits wasted.
    const auto cost = [&](const KindFigures& figures) {
        const double lines =
            figures.lines * figures.kind->choices_of(options) / figures.kind->facts().choices.standard;
        return std::tuple(lines > most_lines_recommended ? lines : 0, figures.excess_bits);
    };
    for (const KindFigures& figures : kind_figures()) {
        const FilterKind& kind = *figures.kind;
        if (kind.exact() != nullptr || !takes(kind, options)) continue;
        if (prefixes && !kind.facts().takes_prefixes) continue;
        if (best == nullptr || cost(figures) < cost(*best)) best = &figures;
    }
    return best != nullptr ? *best->kind : kind_of(SIEVE_KIND_BLOCKED); // of the most options
}

} // namespace sieve
