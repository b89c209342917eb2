// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the program counted, summed over the CPUs.
#pragma once

#include <array>
#include <cstdint>

#include <sieve/policy.h>

#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

struct Stats {
    std::array<sieve_counter, SIEVE_SLOTS>
        hit{}; // since the program was loaded; a SetInForce has its baseline
    std::array<sieve_verified, SIEVE_SLOTS> verified{};
    std::array<sieve_counter, SIEVE_SLOTS> over{}; // matches over their set's limit; hits, too
    sieve_counter dropped{};
    sieve_counter passed{};
    sieve_counter redirected{};
    sieve_counter replied{};       // would have been dropped, but answer own flows; they also count as passed
    std::uint64_t events_lost = 0; // samples that found no room
    std::uint64_t redirect_failed = 0; // packets without a target; counted as dropped or passed, too
    std::array<std::uint64_t, SIEVE_OUTCOMES> outcome{};
    std::uint64_t decided = 0;          // packets that a set decided, or that passed as replies
    std::uint64_t asked_unreadable = 0; // unreadable packets for which the sets were asked

    // Packets that no set decided, although the sets were asked. While packets are being counted, the number
    // may be too low by one for each CPU.
    [[nodiscard]] std::uint64_t by_default() const;
};

[[nodiscard]] Result<Stats> read_stats(const Instance& instance);

// Sets all counters to zero; only for an instance that no packet runs through.
[[nodiscard]] Status clear_stats(const Instance& instance);

// The counters that belong to no set, as a baseline; and the same counters since a baseline. Those of sets
// stay as they are, since each set has its own baseline, and so do lost events.
[[nodiscard]] sieve_totals totals_of(const Stats& stats);
[[nodiscard]] Stats since(const Stats& stats, const sieve_totals& baseline);

// later - earlier, in arithmetic modulo 2^64 as the counters are.
[[nodiscard]] sieve_counter difference(const sieve_counter& later, const sieve_counter& earlier);
[[nodiscard]] sieve_verified difference(const sieve_verified& later, const sieve_verified& earlier);

// The name of an enum sieve_outcome in tables and JSON.
[[nodiscard]] const char* outcome_name(std::uint32_t outcome);

// How many packets could not be read to their end, for whatever reason. The outcomes from
// SIEVE_OUTCOME_FIRST_UNREADABLE on are the reasons.
[[nodiscard]] std::uint64_t unreadable_packets(const Stats& stats);

} // namespace sieve::kernel
