// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind of a set whose kind nobody names (automatic_kind). This is the only place that decides it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <sieve/prefix.h>

#include "libsieve/build/exceptions.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/key_set.hpp"

namespace sieve {

// What the kind follows from, of a list.
struct ListFacts {
    std::uint32_t fields = SIEVE_FIELD_SRC;
    bool ranges = false;         // it has prefixes or ranges of addresses
    bool excepts_ranges = false; // its exceptions have some; a filter would have to be asked for each address
    bool spilled = false;        // it is too long for the memory limit, so its keys are on disk
    std::uint64_t addresses[SIEVE_FAMILIES] = {0, 0}; // that it lists one by one
};

// Of a list of these keys and ranges of addresses, without its exceptions.
[[nodiscard]] ListFacts facts_of(const KeySet& keys, std::span<const AddressRange> ranges,
                                 const Exceptions& exceptions);

struct KindChoice {
    sieve_kind kind = automatic_kind;
    std::string reason{}; // for people, why not `exact`, of a list of addresses; empty if they have said so
};

// The options' kind, or the one that a list chooses:
//
//   - `exact` for single addresses, and `ranges` if there are prefixes or ranges among them. Both have no
//     false positive.
//   - The filter that settled_kind (build/set_builder.hpp) chooses for any other key, and for addresses if a
//     size, a rate or another option of filters was chosen, if `exact` would take more than
//     most_bytes_of_exact (filters/kinds/choice.hpp), and if building it would take more memory than the
//     limit.
[[nodiscard]] KindChoice chosen_kind(const BuildOptions& options, const ListFacts& list);

} // namespace sieve
