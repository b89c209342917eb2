// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An attacker who chooses each key after the verdicts on earlier keys. The attacker looks for non-members
// that a filter matches more often than it promises.
//
// The game is that of Naor, Yogev, "Bloom Filters in Adversarial Environments" (CRYPTO 2015), section 2: the
// attacker wins with a key that was not asked before. A known false positive stays one until the next build,
// so repeating it does not count as a gain.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <sieve/key.h>

#include "sieve-lab/simulations/random.hpp"

namespace sieve::experiments {

/// A number inside a key that the attacker may choose: `width` bits (1 to 64) of a word, from `shift` up.
struct KeyField {
    unsigned word = 0;
    unsigned shift = 0;
    unsigned width = 0;
};

/// All keys that the attacker can send: a fixed form, and the fields that are free.
class KeySpace {
  public:
    KeySpace(const sieve_key& form, std::vector<KeyField> fields) : form_(form), fields_(std::move(fields)) {}

    static KeySpace ipv4_source();
    static KeySpace ipv6_source();   ///< four fields of 32 bits: the halves that the hash multiplies
    static KeySpace ipv4_tcp_flow(); ///< both addresses, both ports

    [[nodiscard]] const std::vector<KeyField>& fields() const { return fields_; }
    [[nodiscard]] std::uint64_t get(const sieve_key& key, std::size_t field) const;
    /// The key with that field set, modulo 2^width.
    [[nodiscard]] sieve_key with(sieve_key key, std::size_t field, std::uint64_t value) const;
    [[nodiscard]] sieve_key random(Random& random) const;
    /// z + y - x in every field. Where a hash is affine in the fields, its value for the result follows from
    /// its values for x, y and z.
    [[nodiscard]] sieve_key parallelogram(const sieve_key& x, const sieve_key& y, const sieve_key& z) const;

  private:
    sieve_key form_;
    std::vector<KeyField> fields_;
};

/// How an attacker chooses keys. A strategy that needs false positives to start from first spends half of its
/// queries on random keys.
enum class Strategy {
    oblivious,      ///< random keys: what the promised rate is about
    near_members,   /// next to the members, which a public feed lists
    near_hits,      ///< next to the false positives found so far, and next to those found there
    differences,    ///< false positive plus or minus 2^j, in each field; then multiples of what worked best
    parallelograms, ///< z + y - x of three false positives
    half_words, ///< many settings of all fields but one; those with most matches go on (successive halving)
    replay,     ///< the false positives of another build of the same keys
};
[[nodiscard]] std::string_view name(Strategy strategy);
inline constexpr Strategy all_strategies[] = {
    Strategy::oblivious,      Strategy::near_members, Strategy::near_hits, Strategy::differences,
    Strategy::parallelograms, Strategy::half_words,   Strategy::replay};

/// The filter as the attacker sees it.
struct Target {
    std::function<bool(const sieve_key&)> matches;   ///< the verdict on a packet
    std::function<bool(const sieve_key&)> is_member; ///< asked only about keys that match
    std::vector<sieve_key> members;                  ///< some that the attacker knows
    std::vector<sieve_key> elsewhere;                ///< false positives of another build
};

/// What the attacker chose by its strategy; the random keys that it learned from do not count.
struct Attack {
    std::uint64_t chosen = 0;
    std::uint64_t hits = 0;             ///< distinct non-members among them that matched
    std::vector<sieve_key> positives{}; ///< all false positives it has seen, random ones included
};

/// Plays one strategy with that many queries in all (replay: as many as it has keys).
[[nodiscard]] Attack attack(const Target& target, const KeySpace& space, Strategy strategy,
                            std::uint64_t queries, Random& random);

} // namespace sieve::experiments
