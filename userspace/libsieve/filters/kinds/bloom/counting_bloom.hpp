// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The counting Bloom filter: L. Fan, P. Cao, J. Almeida, A. Broder, "Summary Cache: A Scalable Wide-Area Web
// Cache Sharing Protocol" (IEEE/ACM Transactions on Networking 8, 2000), section V.C, who show that four bits
// a counter suffice. Setting all counters that are not zero to one yields the Bloom filter (two-choice paper,
// section 2.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sieve/bloom.h>

#include "libsieve/util/huge_array.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

/// Counters of four bits, sixteen a word. One that reaches 15 stays there for ever, since nobody knows any
/// more how many keys it stands for: its bit is never cleared, which costs a little accuracy and can never
/// lose a key.
class NibbleCounters {
  public:
    static constexpr std::uint64_t limit = 15;

    explicit NibbleCounters(std::uint64_t count) : words_((count + 15) / 16) {}

    [[nodiscard]] std::uint64_t operator[](std::uint64_t at) const {
        return (words_[at / 16] >> (at % 16 * 4)) & limit;
    }

    void increment(std::uint64_t at) {
        if ((*this)[at] != limit) words_[at / 16] += std::uint64_t{1} << (at % 16 * 4);
    }

    /// A counter at zero stays at zero.
    void decrement(std::uint64_t at) {
        const std::uint64_t count = (*this)[at];
        if (count != limit && count != 0) words_[at / 16] -= std::uint64_t{1} << (at % 16 * 4);
    }

    void prefetch(std::uint64_t at) const { __builtin_prefetch(&words_[at / 16]); }

    /// How many counters have reached the limit.
    [[nodiscard]] std::uint64_t saturated() const;

    /// How many counters are not zero.
    [[nodiscard]] std::uint64_t ones() const;

    /// The Bloom filter: counter 512 l + b becomes bit b of line l. There must be 512 counters a line, or
    /// more.
    void write(std::span<sieve_line> lines) const;

    /// The words themselves, for loops that the compiler is to vectorise.
    [[nodiscard]] const std::uint64_t* words() const { return words_.data(); }

  private:
    HugeArray<std::uint64_t> words_;
};

/// A counting Bloom filter of one group of hash functions (sieve/bloom.h), to insert into and delete from.
class CountingBloom {
  public:
    /// Errors: no lines or hashes, or more than sieve/bloom.h knows.
    static Result<CountingBloom> create(std::uint32_t lines, std::uint32_t hashes);

    void insert(sieve_hash key);

    /// Takes a key out that was inserted before. Refused, and nothing changed, where the filter can tell that
    /// it was not: a counter is zero. (An absent key that is a false positive cannot be told; taking it out
    /// would make members absent, as with every counting Bloom filter.)
    Status remove(sieve_hash key);

    [[nodiscard]] bool contains(sieve_hash key) const;

    /// Counters at their limit: bits that no deletion clears any more.
    [[nodiscard]] std::uint64_t saturated() const { return counters_.saturated(); }

    /// Fraction of counters that are not zero.
    [[nodiscard]] double fraction_of_ones() const;

    /// The plain filter: `filter` has as many lines as this one.
    void write(std::span<sieve_line> filter) const { counters_.write(filter); }

  private:
    CountingBloom(std::uint32_t lines, std::uint32_t hashes)
        : lines_(lines), hashes_(hashes), counters_(std::uint64_t{lines} * SIEVE_LINE_BITS) {}

    template <class Visit>
    void for_each_position(sieve_hash key, Visit visit) const;

    std::uint32_t lines_;
    std::uint32_t hashes_;
    NibbleCounters counters_;
};

} // namespace sieve
