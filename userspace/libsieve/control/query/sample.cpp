// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/sample.hpp"

#include <algorithm>
#include <utility>

namespace sieve::control {

namespace {

Result<Sample> take_sample(Kernel& kernel, const kernel::Hook& hook) {
    Sample sample;
    sample.interface = hook.interface.name;
    sample.point = hook.point;
    sample.program_id = hook.ours->id;
    SIEVE_ASSIGN(sample.table, read_table_status(kernel, hook));
    sample.at = std::chrono::steady_clock::now();
    SIEVE_ASSIGN(sample.stats, kernel.read_stats(hook));
    if (sample.table.replies == SIEVE_ACTION_PASS) {
        SIEVE_ASSIGN(sample.replies, kernel.read_replies(hook));
    }
    return sample;
}

bool same_program(const Sample& a, const Sample& b) {
    return a.interface == b.interface && a.point == b.point && a.program_id == b.program_id;
}

// Whether `a` and `b` are one set that was in force all along, and not two sets of one name.
bool same_set(const kernel::SetInForce& a, const kernel::SetInForce& b) {
    return a.name == b.name && a.slot == b.slot && a.baseline.packets == b.baseline.packets;
}

sieve_counter seen_of(const kernel::Stats& stats) {
    sieve_counter sum{};
    for (const sieve_counter& part : {stats.passed, stats.dropped, stats.redirected}) {
        sum.packets += part.packets;
        sum.bytes += part.bytes;
    }
    return sum;
}

Rate rate(const sieve_counter& now, const sieve_counter& earlier, double seconds) {
    const sieve_counter grown = kernel::difference(now, earlier);
    return {.packets = static_cast<double>(grown.packets) / seconds,
            .bits = 8 * static_cast<double>(grown.bytes) / seconds};
}

} // namespace

double Verified::rate() const {
    return counted.non_members == 0
               ? 0
               : static_cast<double>(counted.avoided) / static_cast<double>(counted.non_members);
}

sieve_counter Sample::seen() const {
    return seen_of(counted());
}

sieve_counter Sample::hits(const SetStatus& set) const {
    return kernel::difference(stats.hit[set.set.slot], set.set.baseline);
}

std::optional<sieve_counter> Sample::over(const SetStatus& set) const {
    if (set.set.action != SIEVE_ACTION_LIMIT) return std::nullopt;
    return kernel::difference(stats.over[set.set.slot], set.set.over_baseline);
}

std::optional<Verified> Sample::verified(const SetStatus& set) const {
    if (!set.verified()) return std::nullopt;
    return Verified{.counted = kernel::difference(stats.verified[set.set.slot], set.set.verified_baseline),
                    .expected_rate = set.expected_rate()};
}

Result<std::vector<Sample>> take_samples(Kernel& kernel, const HookName& name) {
    SIEVE_ASSIGN(std::vector<kernel::Hook> hooks, hooks_of(kernel, name));
    const bool named = !name.interface.empty();
    if (hooks.empty() && named) {
        SIEVE_ASSIGN(kernel::Hook hook, find_ours(kernel, name)); // the error says what is there
        hooks.push_back(std::move(hook));
    }
    std::vector<Sample> samples;
    for (const kernel::Hook& hook : hooks) {
        if (named) SIEVE_TRY(kernel::refuse_unless_ours(hook));
        if (!hook.speaks_our_version()) continue;
        SIEVE_ASSIGN(Sample sample, take_sample(kernel, hook));
        samples.push_back(std::move(sample));
    }
    return samples;
}

std::optional<Rates> rates_since(const std::vector<Sample>& earlier, const Sample& now) {
    const auto found = std::find_if(earlier.begin(), earlier.end(),
                                    [&](const Sample& sample) { return same_program(sample, now); });
    if (found == earlier.end()) return std::nullopt;
    const Sample& before = *found;
    const double seconds = std::chrono::duration<double>(now.at - before.at).count();
    if (!(seconds > 0)) return std::nullopt;
    Rates rates{.seen = rate(seen_of(now.stats), seen_of(before.stats), seconds),
                .passed = rate(now.stats.passed, before.stats.passed, seconds),
                .dropped = rate(now.stats.dropped, before.stats.dropped, seconds),
                .redirected = rate(now.stats.redirected, before.stats.redirected, seconds),
                .sets = {}};
    for (const SetStatus& set : now.table.sets)
        for (const SetStatus& old : before.table.sets)
            if (same_set(set.set, old.set))
                rates.sets[set.set.name] = rate(now.hits(set), before.hits(old), seconds);
    return rates;
}

} // namespace sieve::control
