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

#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

/// Counters of four bits, sixteen in a word. A counter that reaches 15 stays at 15, because it no longer
/// tells how many keys it stands for. Its bit is never cleared, which costs a little accuracy but never loses
/// a key.
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

    /// Writes the Bloom filter: counter 512 l + b becomes bit b of line l. There must be at least 512
    /// counters for each line.
    void write(std::span<sieve_line> lines) const;

    /// The words themselves, for loops that the compiler should vectorise.
    [[nodiscard]] const std::uint64_t* words() const { return words_.data(); }

  private:
    HugeArray<std::uint64_t> words_;
};

/// A counting Bloom filter with one group of hash functions (sieve/bloom.h). Keys can be inserted and
/// deleted.
class CountingBloom {
  public:
    /// Errors: no lines or hashes, or more than sieve/bloom.h allows.
    static Result<CountingBloom> create(std::uint32_t lines, std::uint32_t hashes);

    void insert(sieve_hash key);

    /// Deletes a key that was inserted before. Error: a counter is zero, so the key was never inserted;
    /// nothing has changed. (The filter cannot detect an absent key that is a false positive. Deleting such a
    /// key makes members absent, as in every counting Bloom filter.)
    Status remove(sieve_hash key);

    [[nodiscard]] bool contains(sieve_hash key) const;

    /// Number of counters at their limit. Deletions never clear their bits.
    [[nodiscard]] std::uint64_t saturated() const { return counters_.saturated(); }

    /// Fraction of counters that are not zero.
    [[nodiscard]] double fraction_of_ones() const;

    /// Writes the plain filter. `filter` must have as many lines as this one.
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
