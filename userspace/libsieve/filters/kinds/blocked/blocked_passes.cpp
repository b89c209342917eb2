// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_passes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>

#include "libsieve/filters/placement/noise_table.hpp"
#include "libsieve/filters/placement/scatter.hpp"
#include "libsieve/filters/placement/wide_line.hpp"
#include "libsieve/util/parallel/first_use.hpp"
#include "libsieve/util/random/splitmix64.hpp"

namespace sieve {

namespace {

// How many keys ahead the lines are requested when keys are put.
constexpr std::size_t lookahead = 8;

// The moves of this many keys are weighed at once.
constexpr std::size_t together = WideRate::lanes;

using Noise = NoiseTable<10>;

struct Pass {
    float temperature = 0;
    std::uint64_t seed = 0;
};

SIEVE_ALWAYS_INLINE void request(const BlockedShard& shard, std::uint32_t at) {
    const char* line = reinterpret_cast<const char*>(&shard.lines[at]);
    for (std::size_t offset = 0; offset < sizeof(LineCounters); offset += 64)
        __builtin_prefetch(line + offset, 1);
    __builtin_prefetch(&shard.rates[at], 1);
}

template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void put(const BlockedShard& shard, const WideRate& rate, std::size_t key,
                             std::uint64_t ties) {
    const std::uint32_t* at = shard.places + key * Choices;
    const WideLine pattern = wide_pattern(shard.tests[key], shard.lookup.hashes);
    float with[4];
    rate(shard.lines[at[0]].set() | pattern, Choices > 1 ? shard.lines[at[1]].set() | pattern : WideLine{},
         with[0], with[1]);
    if constexpr (Choices == 3) rate(shard.lines[at[2]].set() | pattern, WideLine{}, with[2], with[3]);
    std::uint32_t best = 0;
    float best_added = with[0] - shard.rates[at[0]];
    for (std::uint32_t c = 1; c < Choices; c++) {
        const float added = with[c] - shard.rates[at[c]];
        // Each of several equal lines must have the same chance: the c-th of them takes over with probability
        // 1/(c+1).
        ties >>= 16;
        if (added < best_added || (added == best_added && ties % (c + 1) == 0)) {
            best = c;
            best_added = added;
        }
    }
    shard.choice[key] = static_cast<std::uint8_t>(best);
    shard.lines[at[best]].add(pattern);
    shard.rates[at[best]] = with[best];
}

template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void put_all(const BlockedShard& shard, const Pass& pass) {
    const WideRate rate(shard.lookup.hashes);
    SplitMix64 random(pass.seed);
    ScatteredOrder order(shard.keys);
    std::array<std::size_t, lookahead> next{};
    for (std::size_t i = 0; i < shard.keys + lookahead; i++) {
        std::size_t& slot = next[i % lookahead];
        if (i >= lookahead) put<Choices>(shard, rate, slot, random());
        if (i >= shard.keys) continue;
        slot = order.next();
        for (std::uint32_t c = 0; c < Choices; c++) request(shard, shard.places[slot * Choices + c]);
    }
}

// What is known of the moves that are weighed together.
struct Moves {
    // Of each key, where it is and where it would go.
    alignas(64) std::uint32_t from[together];
    alignas(64) std::uint32_t to[together];
    alignas(64) std::uint8_t choice[together];
    // The rates of these lines now, and the largest loss that is accepted.
    alignas(64) float rate_from[together];
    alignas(64) float rate_to[together];
    alignas(64) float most[together];
    // The lines after the move, and the key's pattern.
    alignas(64) WideLine without[together];
    alignas(64) WideLine with[together];
    alignas(64) WideLine pattern[together];
};

// Whether a move is made is a guess for the processor until it knows the lines' rates, and work that it did
// ahead on a wrong guess is lost. So several moves are weighed before any of them is made. If one of them
// changes a line of another, the other one is weighed again when its turn comes; the outcome is that of one
// after the other.
template <std::uint32_t Choices>
class Mover {
  public:
    Mover(const BlockedShard& shard, const Pass& pass, const Noise& exponential)
        : shard_(shard), rate_(shard.lookup.hashes), temperature_(pass.temperature),
          exponential_(exponential) {}

    SIEVE_ALWAYS_INLINE void weigh(Moves& moves, std::size_t i, std::size_t key, std::uint64_t draw) const {
        const std::uint32_t* at = shard_.places + key * Choices;
        const std::uint32_t own = shard_.choice[key];
        std::uint32_t other = own ^ 1;
        if constexpr (Choices == 3) {
            other = own + 1 + static_cast<std::uint32_t>(draw >> 63);
            other = other >= 3 ? other - 3 : other;
        }
        const std::uint32_t from = at[own];
        const std::uint32_t to = at[other];
        const WideLine pattern = wide_pattern(shard_.tests[key], shard_.lookup.hashes);
        moves.from[i] = from;
        moves.to[i] = to;
        moves.choice[i] = static_cast<std::uint8_t>(other);
        moves.rate_from[i] = shard_.rates[from];
        moves.rate_to[i] = shard_.rates[to];
        moves.most[i] =
            from == to ? -std::numeric_limits<float>::infinity() : temperature_ * exponential_(draw);
        moves.without[i] = shard_.lines[from].set_without(pattern);
        moves.with[i] = shard_.lines[to].set() | pattern;
        moves.pattern[i] = pattern;
    }

    // Makes the moves of the first `count` keys `key`, `key` + `stride` and so on.
    SIEVE_ALWAYS_INLINE void make(const Moves& moves, std::size_t count, std::size_t key,
                                  std::size_t stride) const {
        alignas(64) float without[together];
        alignas(64) float with[together];
        rate_.of_many(moves.without, without);
        rate_.of_many(moves.with, with);
        enum : std::int32_t { stays = 0, moving = 1, changed = 2 };
        alignas(64) std::int32_t state[together];
        for (std::size_t i = 0; i < together; i++)
            state[i] = (with[i] - moves.rate_to[i]) - (moves.rate_from[i] - without[i]) > moves.most[i]
                           ? stays
                           : moving;
        for (std::size_t i = 0; i < count; i++) {
            if (state[i] == stays) continue;
            const std::uint32_t from = moves.from[i];
            const std::uint32_t to = moves.to[i];
            const WideLine pattern = moves.pattern[i];
            if ((state[i] & changed) != 0) {
                rate_(shard_.lines[from].set_without(pattern), shard_.lines[to].set() | pattern, without[i],
                      with[i]);
                const float loss = (with[i] - shard_.rates[to]) - (shard_.rates[from] - without[i]);
                if (loss > moves.most[i]) continue;
            }
            shard_.choice[key + i * stride] = moves.choice[i];
            shard_.lines[from].remove(pattern);
            shard_.lines[to].add(pattern);
            shard_.rates[from] = without[i];
            shard_.rates[to] = with[i];
            for (std::size_t j = 0; j < together; j++)
                state[j] |= ((moves.from[j] == from) | (moves.from[j] == to) | (moves.to[j] == from) |
                             (moves.to[j] == to))
                                ? changed
                                : 0;
        }
    }

  private:
    const BlockedShard& shard_;
    WideRate rate_;
    float temperature_;
    const Noise& exponential_;
};

// Neighbours in hash_order mostly have the same first line, so keys that are weighed together are not
// neighbours: as many walks as there are such keys go through equal parts of the shard. The walks' first
// lines stay in the first-level cache.
template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void move_all(const BlockedShard& shared, const Pass& pass) {
    static std::atomic<const Noise*> known = nullptr;
    const Noise& exponential = first_use(known, Noise::exponential);
    const BlockedShard shard = shared; // a copy whose address nobody has: no store can change it
    const Mover<Choices> mover(shard, pass, exponential);
    SplitMix64 random(pass.seed);
    Moves moves{};
    const std::size_t part = shard.keys / together;
    for (std::size_t step = 0; step < part; step++) {
        for (std::size_t i = 0; i < together; i++) {
            const std::size_t key = i * part + step;
            for (std::uint32_t c = 1; c < Choices; c++)
                request(shard, shard.places[(key + 1) * Choices + c]); // there is one more than keys
            mover.weigh(moves, i, key, random());
        }
        mover.make(moves, together, step, part);
    }
    for (std::size_t key = part * together; key < shard.keys; key++) {
        mover.weigh(moves, 0, key, random());
        mover.make(moves, 1, key, 1);
    }
}

enum class Task { put, move };

template <Task task>
SIEVE_ALWAYS_INLINE void run(const BlockedShard& shard, const Pass& pass) {
    if constexpr (task == Task::put) {
        if (shard.lookup.choices == 1) return put_all<1>(shard, pass);
        if (shard.lookup.choices == 2) return put_all<2>(shard, pass);
        put_all<3>(shard, pass);
    } else {
        if (shard.lookup.choices == 2) return move_all<2>(shard, pass);
        if (shard.lookup.choices == 3) move_all<3>(shard, pass);
    }
}

#ifdef __x86_64__
// The hot loops are also compiled for newer processors. clang has no attribute for the preferred vector
// width.
#ifdef __clang__
#define SIEVE_NEWEST "arch=x86-64-v4,avx512vpopcntdq"
#else
#define SIEVE_NEWEST "arch=x86-64-v4,avx512vpopcntdq,prefer-vector-width=512"
#endif
template <Task task>
[[gnu::target(SIEVE_NEWEST)]] void run_newest(const BlockedShard& shard, const Pass& pass) {
    run<task>(shard, pass);
}
template <Task task>
[[gnu::target("arch=x86-64-v3")]] void run_newer(const BlockedShard& shard, const Pass& pass) {
    run<task>(shard, pass);
}
#endif
template <Task task>
void run_plain(const BlockedShard& shard, const Pass& pass) {
    run<task>(shard, pass);
}

using Run = void (*)(const BlockedShard&, const Pass&);

template <Task task>
Run best_run() {
#ifdef __x86_64__
    if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vpopcntdq"))
        return run_newest<task>;
    if (__builtin_cpu_supports("x86-64-v3")) return run_newer<task>;
#endif
    return run_plain<task>;
}

} // namespace

void put_keys(const BlockedShard& shard, std::uint64_t seed) {
    best_run<Task::put>()(shard, {.seed = seed});
}

void move_keys(const BlockedShard& shard, float temperature, std::uint64_t seed) {
    best_run<Task::move>()(shard, {.temperature = temperature, .seed = seed});
}

} // namespace sieve
