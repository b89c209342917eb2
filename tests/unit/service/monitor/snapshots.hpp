// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Snapshots made by hand, for tests of what is made of them.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "libsieve/filters/filter_kind.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/service/monitor/snapshot.hpp"

namespace sieve::service::watching::test {

inline constexpr Clock::time_point sample_now{std::chrono::seconds(1'795'334'400)};

inline control::SetStatus sample_set(const std::string& name, std::uint32_t slot, std::uint64_t keys,
                                     double rate, bool verify, std::chrono::seconds age) {
    control::SetStatus status{};
    status.set.name = name;
    status.set.slot = slot;
    status.set.map_id = 1000 + slot;
    status.set.action = SIEVE_ACTION_DROP;
    status.filter.lookup.kind = SIEVE_KIND_BLOCKED;
    status.filter.lookup.fields = SIEVE_FIELD_SRC;
    status.filter.lookup.buckets = keys * 20 / 512 + 1;
    status.filter.file.keys = keys;
    status.filter.file.expected_fpr = rate_to_bits(rate);
    status.filter.file.built_at = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>((sample_now - age).time_since_epoch()).count());
    status.filter.bytes = status.filter.lookup.buckets * 64 + 4096;
    std::strcpy(reinterpret_cast<char*>(status.filter.file.label), "/etc/xdp-sieve/lists");
    if (verify) {
        status.set.exact_id = 2000 + slot;
        status.exact_bytes = keys * 40;
    }
    return status;
}

// A host in the middle of a rollout.
inline FleetStanding sample_fleet() {
    FleetStanding fleet;
    fleet.fleet = "edge";
    fleet.node = "gate-1";
    fleet.state = FleetState::followed;
    fleet.contact = sample_now - std::chrono::seconds(19);
    fleet.in_force = fleet.wanted = fleet.published = 1'795'334'100'000;
    fleet.manifest = "3f2a90c1";
    fleet.rollout = "running";
    fleet.stage = 2;
    fleet.stages = 3;
    fleet.own_stage = 1;
    return fleet;
}

// One hook with so many sets, and an hour of traffic with a wave of drops.
struct SamplePage {
    Snapshot snapshot{};
    std::vector<Moment> history{};

    SamplePage() {
        snapshot.at = sample_now;
        snapshot.record.version = "0.1.0";
        snapshot.record.started = sample_now - std::chrono::hours(76);
        snapshot.record.state = DaemonState::ready;
        snapshot.record.cycles = 911;
        snapshot.record.cycles_changed = 23;
        snapshot.record.cycle_time = {911, Seconds(181), Seconds(0.21)};
        snapshot.record.last_cycle = sample_now - std::chrono::seconds(44);
        snapshot.reading = Seconds(0.0041);
        snapshot.process = {.cpu_seconds = 63.2,
                            .started = 0,
                            .resident_bytes = 21'400'000,
                            .virtual_bytes = 90'000'000,
                            .open_files = 31,
                            .most_files = 1024,
                            .threads = 3,
                            .children_cpu_seconds = 41.8,
                            .children_most_resident_bytes = 88'000'000};
    }

    void add_hook(const std::string& interface, kernel::HookPoint point, std::vector<control::SetStatus> sets,
                  double packets) {
        HookSnapshot hook;
        hook.id = {interface, point};
        hook.sample.interface = interface;
        hook.sample.point = point;
        hook.sample.program_id = 812;
        hook.sample.table.sets = sets;
        for (std::size_t i = 0; i < sets.size(); i++) {
            SetSnapshot set{.status = sets[i], .totals = {}, .verified = {}};
            if (sets[i].verified())
                set.verified = control::Verified{
                    .counted = {48'211'904,
                                static_cast<std::uint64_t>(48'211'904 * 1.06 * sets[i].expected_rate())},
                    .expected_rate = sets[i].expected_rate()};
            hook.sets.push_back(set);
        }
        if (history.empty())
            for (int i = 0; i <= 360; i++)
                history.push_back(
                    {.at = sample_now - std::chrono::seconds(3600 - 10 * i), .hooks = {}, .sets = {}});
        for (std::size_t i = 0; i < history.size(); i++) {
            const double x = static_cast<double>(i) / 360;
            const double wave =
                1 + 0.16 * std::sin(9 * x) + 0.05 * std::sin(61 * x) + 0.03 * std::sin(173 * x);
            const double attack = std::exp(-std::pow((x - 0.58) / 0.07, 2)) + 0.1;
            auto& totals = hook.totals;
            const auto grow = [](sieve_counter& counter, double count, double bytes) {
                counter.packets += static_cast<std::uint64_t>(count);
                counter.bytes += static_cast<std::uint64_t>(count * bytes);
            };
            grow(totals.passed, 10 * packets * wave, 812);
            grow(totals.dropped, 10 * packets * 1.3 * attack, 74);
            totals.outcome[SIEVE_OUTCOME_COMPLETE] =
                (totals.passed.packets + totals.dropped.packets) / 1000 * 995;
            totals.outcome[SIEVE_OUTCOME_ARP] = totals.passed.packets / 2100;
            totals.outcome[SIEVE_OUTCOME_NEIGHBOUR] = totals.passed.packets / 3300;
            totals.outcome[SIEVE_OUTCOME_FRAGMENT] = totals.passed.packets / 870;
            totals.outcome[SIEVE_OUTCOME_TRUNCATED] = totals.passed.packets / 40000;
            history[i].hooks[hook.id] = totals;
            for (std::size_t s = 0; s < hook.sets.size(); s++) {
                SetTotals& set = hook.sets[s].totals;
                const double phase = 0.35 + 0.13 * static_cast<double>(s);
                const double share = std::exp(-std::pow((x - phase) / 0.09, 2)) + 0.05 * wave;
                grow(set.matches, 10 * packets * 0.5 * share / static_cast<double>(s + 1), 74);
                history[i].sets[hook.id][hook.sets[s].status.set.name] = set;
            }
        }
        snapshot.hooks.push_back(std::move(hook));
        want(interface, point, true);
    }

    void want(const std::string& interface, kernel::HookPoint point, bool up) {
        InterfaceConfiguration entry;
        entry.name = interface;
        entry.hook = point;
        snapshot.record.configuration.interfaces.push_back(entry);
        snapshot.wanted.push_back({.id = {interface, point}, .up = up});
    }

    SetHistory& add_list(const std::string& name, const std::string& source, std::uint64_t entries,
                         std::chrono::seconds age, std::chrono::seconds refresh = std::chrono::hours(1)) {
        SetConfiguration set;
        set.name = name;
        set.refresh = refresh;
        if (source.starts_with("http"))
            set.sources.emplace_back(HttpSpec{.url = source});
        else
            set.sources.emplace_back(FileSpec{.path = source});
        snapshot.record.configuration.sets.push_back(set);
        SetHistory& history = snapshot.record.sets[name];
        SetRecord good;
        good.entries = entries;
        good.keys = entries;
        good.bytes = entries * 3;
        good.built_at =
            std::chrono::duration_cast<std::chrono::seconds>((sample_now - age).time_since_epoch()).count();
        history.last_good = good;
        history.refreshes = {70, 5, 1, 0};
        history.confirmed = sample_now - std::chrono::minutes(12);
        RefreshNote last;
        last.at = *history.confirmed;
        last.last_good = good;
        history.last = last;
        history.fetching = {76, Seconds(31), Seconds(0.42)};
        history.building = {5, Seconds(4), Seconds(0.81)};
        history.testing = {5, Seconds(0.2), Seconds(0.038)};
        return history;
    }
};

} // namespace sieve::service::watching::test
