// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A line as one vector of eight words, for the builder's hot loops. With AVX-512 the vector is one register;
// otherwise the compiler uses several. All functions here are inlined into functions that are compiled for
// several processors.
#pragma once

#include <cstdint>

#include <sieve/pattern.h>

// These vectors only cross inlined calls, so the calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace sieve {

#define SIEVE_ALWAYS_INLINE [[gnu::always_inline]] inline

using WideLine [[gnu::vector_size(SIEVE_LINE_BYTES)]] = std::uint64_t;

// sieve_pattern_mask, all words at once.
SIEVE_ALWAYS_INLINE WideLine wide_pattern(std::uint64_t hash, std::uint32_t hashes) {
    constexpr WideLine step = {0, 6, 12, 18, 24, 30, 36, 42};
    const WideLine one = WideLine{} + 1;
    WideLine mask = {};
    if (hashes >= 8) mask = one << (((WideLine{} + hash) >> step) & 63);
    const std::uint64_t round1 = (hash * SIEVE_PATTERN_ROUND1) >> SIEVE_PATTERN_ROUND_SHIFT;
    const std::uint64_t round2 = (hash * SIEVE_PATTERN_ROUND2) >> SIEVE_PATTERN_ROUND_SHIFT;
    if (hashes >= 16) mask |= one << (((WideLine{} + round1) >> step) & 63);
    if (hashes >= 24) mask |= one << (((WideLine{} + round2) >> step) & 63);
    if ((hashes & 7) == 0) return mask;
    const std::uint64_t bits = hash * SIEVE_PATTERN_REST;
    const WideLine rest = WideLine{} + bits;
    constexpr WideLine word = {0, 1, 2, 3, 4, 5, 6, 7};
    if (hashes & 4)
        mask |= (one << ((rest >> (SIEVE_PATTERN_FOUR_BITS + 6 * (word >> 1))) & 63)) &
                static_cast<WideLine>((word & 1) == ((bits >> SIEVE_PATTERN_FOUR_PLACE) & 1));
    if (hashes & 2)
        mask |= (one << ((rest >> (SIEVE_PATTERN_TWO_BITS + 6 * (word >> 2))) & 63)) &
                static_cast<WideLine>((word & 3) == ((bits >> SIEVE_PATTERN_TWO_PLACE) & 3));
    if (hashes & 1)
        mask |= (one << ((bits >> SIEVE_PATTERN_ONE_BIT) & 63)) &
                static_cast<WideLine>(word == ((bits >> SIEVE_PATTERN_ONE_PLACE) & 7));
    return mask;
}

// PatternRate for two lines at once: lanes 0 to 7 hold the words of the first line. A tree of products
// computes the product of all words. Its inner nodes are the products that the remaining bits need: pairs of
// words four apart, then every second word.
class WideRate {
  public:
    static constexpr int lanes = 16;
    using Floats [[gnu::vector_size(4 * lanes)]] = float;
    using Ints [[gnu::vector_size(4 * lanes)]] = std::int32_t;

    explicit WideRate(std::uint32_t hashes)
        : rounds_(hashes / SIEVE_LINE_WORDS), rest_(hashes % SIEVE_LINE_WORDS) {}

    // The same for as many lines as there are lanes. The same tree of products, so the same rates to the last
    // bit.
    SIEVE_ALWAYS_INLINE void of_many(const WideLine* lines, float* rates) const {
        alignas(64) std::uint8_t fills[lanes * SIEVE_LINE_WORDS];
        const auto* words = reinterpret_cast<const std::uint64_t*>(lines);
        for (int w = 0; w < lanes * SIEVE_LINE_WORDS; w++)
            fills[w] = static_cast<std::uint8_t>(__builtin_popcountll(words[w]));
        Ints a;
        Ints b;
        __builtin_memcpy(&a, fills, sizeof(a));
        __builtin_memcpy(&b, fills + sizeof(a), sizeof(b));
        const Ints half[2] = {
            __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
            __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
        Floats share[SIEVE_LINE_WORDS];
        for (int w = 0; w < SIEVE_LINE_WORDS; w++)
            share[w] = __builtin_convertvector((half[w / 4] >> (w % 4 * 8)) & 255, Floats) * (1.0F / 64);
        const Floats pairs[4] = {share[0] * share[4], share[1] * share[5], share[2] * share[6],
                                 share[3] * share[7]};
        const Floats halves[2] = {pairs[0] * pairs[2], pairs[1] * pairs[3]};
        const Floats all = halves[0] * halves[1];
        Floats rate = Floats{} + 1;
        if (rounds_ > 0) rate = all;
        if (rounds_ > 1) rate *= all;
        if (rounds_ > 2) rate *= all;
        if (rest_ & 4) rate *= (halves[0] + halves[1]) * 0.5F;
        if (rest_ & 2) rate *= ((pairs[0] + pairs[2]) + (pairs[1] + pairs[3])) * 0.25F;
        if (rest_ & 1) {
            const Floats even = (share[0] + share[4]) + (share[2] + share[6]);
            const Floats odd = (share[1] + share[5]) + (share[3] + share[7]);
            rate *= (even + odd) * 0.125F;
        }
        __builtin_memcpy(rates, &rate, sizeof(rate));
    }

    SIEVE_ALWAYS_INLINE void operator()(const WideLine& a, const WideLine& b, float& rate_a,
                                        float& rate_b) const {
        alignas(64) std::int32_t ones[16];
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) ones[w] = __builtin_popcountll(a[w]);
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) ones[8 + w] = __builtin_popcountll(b[w]);
        const Floats share =
            __builtin_convertvector(*reinterpret_cast<const Ints*>(ones), Floats) * (1.0F / 64);
        const Floats pairs = share * four_apart(share);
        const Floats halves = pairs * two_apart(pairs);
        const Floats other = next_to(halves);
        const Floats all = halves * other;
        Floats rate = Floats{} + 1;
        if (rounds_ > 0) rate = all;
        if (rounds_ > 1) rate *= all;
        if (rounds_ > 2) rate *= all;
        if (rest_ & 4) rate *= (halves + other) * 0.5F;
        if (rest_ & 2) {
            const Floats two = pairs + two_apart(pairs);
            rate *= (two + next_to(two)) * 0.25F;
        }
        if (rest_ & 1) {
            Floats sum = share + four_apart(share);
            sum += two_apart(sum);
            sum += next_to(sum);
            rate *= sum * 0.125F;
        }
        rate_a = rate[0];
        rate_b = rate[8];
    }

  private:
    // Each lane's partner within its line.
    SIEVE_ALWAYS_INLINE static Floats four_apart(const Floats& v) {
        return __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    }
    SIEVE_ALWAYS_INLINE static Floats two_apart(const Floats& v) {
        return __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    }
    SIEVE_ALWAYS_INLINE static Floats next_to(const Floats& v) {
        return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    }

    std::uint32_t rounds_;
    std::uint32_t rest_;
};

} // namespace sieve
