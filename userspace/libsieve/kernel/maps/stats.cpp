// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/stats.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel {

namespace {

void add(sieve_counter& sum, const sieve_counter& more) {
    sum.packets += more.packets;
    sum.bytes += more.bytes;
}

} // namespace

Result<Stats> read_stats(const Instance& instance) {
    const int cpus = libbpf_num_possible_cpus();
    if (cpus < 0) return refusal("counting the CPUs", cpus);
    std::vector<sieve_stats> values(static_cast<std::size_t>(cpus));
    const std::uint32_t zero = 0;
    if (const int error = bpf_map_lookup_elem(instance.stats_fd(), &zero, values.data()); error != 0)
        return refusal("reading the program's counters", error);
    Stats sum;
    for (const sieve_stats& value : values) {
        for (std::size_t i = 0; i < sum.hit.size(); i++) {
            add(sum.hit[i], value.hit[i]);
            add(sum.over[i], value.over[i]);
            sum.verified[i].non_members += value.verified[i].non_members;
            sum.verified[i].avoided += value.verified[i].avoided;
        }
        add(sum.dropped, value.dropped);
        add(sum.passed, value.passed);
        add(sum.redirected, value.redirected);
        add(sum.replied, value.replied);
        sum.redirect_failed += value.redirect_failed;
        sum.events_lost += value.events_lost;
        sum.decided += value.decided;
        sum.asked_unreadable += value.asked_unreadable;
        for (std::size_t i = 0; i < sum.outcome.size(); i++) sum.outcome[i] += value.outcome[i];
    }
    return sum;
}

Status clear_stats(const Instance& instance) {
    const int cpus = libbpf_num_possible_cpus();
    if (cpus < 0) return refusal("counting the CPUs", cpus);
    const std::vector<sieve_stats> zeros(static_cast<std::size_t>(cpus));
    const std::uint32_t zero = 0;
    if (const int error = bpf_map_update_elem(instance.stats_fd(), &zero, zeros.data(), BPF_ANY); error != 0)
        return refusal("clearing the program's counters", error);
    return {};
}

std::uint64_t Stats::by_default() const {
    const std::uint64_t asked =
        outcome[SIEVE_OUTCOME_COMPLETE] + outcome[SIEVE_OUTCOME_FRAGMENT] + asked_unreadable;
    return asked > decided ? asked - decided : 0;
}

sieve_totals totals_of(const Stats& stats) {
    sieve_totals totals{};
    totals.dropped = stats.dropped;
    totals.passed = stats.passed;
    totals.redirected = stats.redirected;
    totals.replied = stats.replied;
    std::copy(stats.outcome.begin(), stats.outcome.end(), totals.outcome);
    totals.redirect_failed = stats.redirect_failed;
    totals.decided = stats.decided;
    totals.asked_unreadable = stats.asked_unreadable;
    return totals;
}

Stats since(const Stats& stats, const sieve_totals& baseline) {
    Stats grown = stats;
    grown.dropped = difference(stats.dropped, baseline.dropped);
    grown.passed = difference(stats.passed, baseline.passed);
    grown.redirected = difference(stats.redirected, baseline.redirected);
    grown.replied = difference(stats.replied, baseline.replied);
    for (std::size_t i = 0; i < grown.outcome.size(); i++) grown.outcome[i] -= baseline.outcome[i];
    grown.redirect_failed -= baseline.redirect_failed;
    grown.decided -= baseline.decided;
    grown.asked_unreadable -= baseline.asked_unreadable;
    return grown;
}

sieve_counter difference(const sieve_counter& later, const sieve_counter& earlier) {
    return {later.packets - earlier.packets, later.bytes - earlier.bytes};
}

sieve_verified difference(const sieve_verified& later, const sieve_verified& earlier) {
    return {later.non_members - earlier.non_members, later.avoided - earlier.avoided};
}

const char* outcome_name(std::uint32_t outcome) {
    static constexpr const char* names[] = SIEVE_OUTCOME_NAMES;
    static_assert(std::size(names) == SIEVE_OUTCOMES, "every outcome has its name");
    return outcome < SIEVE_OUTCOMES ? names[outcome] : "unknown";
}

std::uint64_t unreadable_packets(const Stats& stats) {
    return std::accumulate(stats.outcome.begin() + SIEVE_OUTCOME_FIRST_UNREADABLE, stats.outcome.end(),
                           std::uint64_t{0});
}

} // namespace sieve::kernel
