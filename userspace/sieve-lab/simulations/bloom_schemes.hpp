// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The ways to draw a key's k probes that the papers compare, to simulate them: A. Kirsch, M. Mitzenmacher,
// "Less Hashing, Same Performance: Building a Better Bloom Filter" (RSA 33, 2008), and F. Grandi, "On the
// analysis of Bloom filters" (IPL, 2017). Written for clarity; the filters in service use sieve/bloom.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "libsieve/util/random/splitmix64.hpp"

namespace sieve::schemes {

/// Bits that can be set and counted.
class BitVector {
  public:
    explicit BitVector(std::uint64_t bits) : bits_(bits), words_((bits + 63) / 64) {}

    [[nodiscard]] std::uint64_t size() const { return bits_; }
    [[nodiscard]] bool operator[](std::uint64_t at) const { return (words_[at / 64] >> (at % 64) & 1) != 0; }
    void set(std::uint64_t at) { words_[at / 64] |= std::uint64_t{1} << (at % 64); }
    [[nodiscard]] std::uint64_t ones() const {
        std::uint64_t sum = 0;
        for (const auto word : words_) sum += static_cast<std::uint64_t>(std::popcount(word));
        return sum;
    }

  private:
    std::uint64_t bits_;
    std::vector<std::uint64_t> words_;
};

enum class Scheme {
    standard,        ///< k independent hashes into all m bits: less-hashing paper, section 2; Grandi, 2.1
    classic,         ///< k distinct bits: Grandi, section 2.2
    partitioned,     ///< k independent hashes, each into its own m/k bits: less-hashing paper, section 2
    partition,       ///< h1 + i h2 mod m/k into the i-th m/k bits: section 5.1
    double_hashing,  ///< h1 + i h2 mod m: section 5.2
    enhanced_square, ///< h1 + i h2 + i^2 mod m: section 5.2 with f(i) = i^2
    enhanced_cube,   ///< h1 + i h2 + i^3 mod m: section 5.2 with f(i) = i^3
    triple_hashing,  ///< h1 + i h2 + i(i-1)/2 h3 mod m: section 8
};

inline constexpr std::array all_schemes = {
    Scheme::standard,       Scheme::classic,         Scheme::partitioned,   Scheme::partition,
    Scheme::double_hashing, Scheme::enhanced_square, Scheme::enhanced_cube, Scheme::triple_hashing};

constexpr std::string_view name(Scheme scheme) {
    switch (scheme) {
    case Scheme::standard:
        return "standard";
    case Scheme::classic:
        return "classic";
    case Scheme::partitioned:
        return "partitioned";
    case Scheme::partition:
        return "partition";
    case Scheme::double_hashing:
        return "double hashing";
    case Scheme::enhanced_square:
        return "enhanced double hashing, i^2";
    case Scheme::enhanced_cube:
        return "enhanced double hashing, i^3";
    case Scheme::triple_hashing:
        return "triple hashing";
    }
    return "";
}

/// A Bloom filter of m bits and k probes a key under one of the schemes. A key is a number; its hashes are
/// drawn from a generator seeded with it, that is, they are fully random as in the papers' model.
class SchemeFilter {
  public:
    /// Preconditions: 1 <= k <= m. The partition schemes leave m mod k bits unused.
    SchemeFilter(Scheme scheme, std::uint64_t m, unsigned k) : scheme_(scheme), bits_(m), probes_(k) {
        assert(k >= 1 && k <= m);
    }

    void insert(std::uint64_t key) {
        draw(key);
        for (const auto at : probes_) bits_.set(at);
    }

    [[nodiscard]] bool contains(std::uint64_t key) {
        draw(key);
        return std::all_of(probes_.begin(), probes_.end(), [this](std::uint64_t at) { return bits_[at]; });
    }

    /// The positions of a key's probes, in order.
    [[nodiscard]] const std::vector<std::uint64_t>& probes(std::uint64_t key) {
        draw(key);
        return probes_;
    }

    [[nodiscard]] const BitVector& bits() const { return bits_; }

  private:
    void draw(std::uint64_t key) {
        SplitMix64 random(key);
        const std::uint64_t m = bits_.size();
        const std::uint64_t k = probes_.size();
        const std::uint64_t part = m / k;
        // The generator's numbers come in sequence. Consecutive keys must not share any of them.
        random = SplitMix64(random.below(~std::uint64_t{0}));
        const auto below = [&random](std::uint64_t n) { return random.below(n); };
        switch (scheme_) {
        case Scheme::standard:
            for (auto& at : probes_) at = below(m);
            return;
        case Scheme::classic: // Floyd's sampling
            for (std::uint64_t i = 0; i < k; i++) {
                const std::uint64_t at = below(m - k + i + 1);
                const auto end = probes_.begin() + static_cast<std::ptrdiff_t>(i);
                probes_[i] = std::find(probes_.begin(), end, at) == end ? at : m - k + i;
            }
            return;
        case Scheme::partitioned:
            for (std::uint64_t i = 0; i < k; i++) probes_[i] = i * part + below(part);
            return;
        default:
            break;
        }
        const std::uint64_t range = scheme_ == Scheme::partition ? part : m;
        const std::uint64_t h1 = below(range);
        const std::uint64_t h2 = below(range);
        const std::uint64_t h3 = scheme_ == Scheme::triple_hashing ? below(range) : 0;
        for (std::uint64_t i = 0; i < k; i++) {
            std::uint64_t extra = 0;
            if (scheme_ == Scheme::enhanced_square) extra = i * i;
            if (scheme_ == Scheme::enhanced_cube) extra = i * i * i;
            if (scheme_ == Scheme::triple_hashing) extra = i * (i - 1) / 2 * h3;
            probes_[i] = (h1 + i * h2 + extra) % range;
            if (scheme_ == Scheme::partition) probes_[i] += i * part;
        }
    }

    Scheme scheme_;
    BitVector bits_;
    std::vector<std::uint64_t> probes_;
};

} // namespace sieve::schemes
