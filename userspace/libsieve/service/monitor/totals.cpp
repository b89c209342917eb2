// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/totals.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/util/text/json_text.hpp"

namespace sieve::service::watching {

namespace {

using nlohmann::json;

constexpr int text_version = 1;
// Of hooks and of sets each. Names come and go with the configuration, so the oldest are forgotten.
constexpr std::size_t most_states = 1024;

// How far a counter has come. A counter that fell was not the same one: then nothing is known.
std::uint64_t growth(std::uint64_t now, std::uint64_t before) {
    return now >= before ? now - before : 0;
}

sieve_counter growth(const sieve_counter& now, const sieve_counter& before) {
    return {growth(now.packets, before.packets), growth(now.bytes, before.bytes)};
}

sieve_verified growth(const sieve_verified& now, const sieve_verified& before) {
    return {growth(now.non_members, before.non_members), growth(now.avoided, before.avoided)};
}

void add(sieve_counter& sum, const sieve_counter& more) {
    sum.packets += more.packets;
    sum.bytes += more.bytes;
}

void add(sieve_verified& sum, const sieve_verified& more) {
    sum.non_members += more.non_members;
    sum.avoided += more.avoided;
}

void add(HookTotals& sum, const HookTotals& now, const HookTotals& before) {
    add(sum.passed, growth(now.passed, before.passed));
    add(sum.dropped, growth(now.dropped, before.dropped));
    add(sum.redirected, growth(now.redirected, before.redirected));
    add(sum.replied, growth(now.replied, before.replied));
    sum.redirect_failed += growth(now.redirect_failed, before.redirect_failed);
    sum.events_lost += growth(now.events_lost, before.events_lost);
    for (std::size_t i = 0; i < sum.outcome.size(); i++)
        sum.outcome[i] += growth(now.outcome[i], before.outcome[i]);
}

void add(SetTotals& sum, const SetTotals& now, const SetTotals& before) {
    add(sum.matches, growth(now.matches, before.matches));
    add(sum.verified, growth(now.verified, before.verified));
}

HookTotals counted(const kernel::Stats& stats) {
    return {.passed = stats.passed,
            .dropped = stats.dropped,
            .redirected = stats.redirected,
            .replied = stats.replied,
            .redirect_failed = stats.redirect_failed,
            .events_lost = stats.events_lost,
            .outcome = stats.outcome};
}

SetTotals counted(const kernel::Stats& stats, std::uint32_t slot) {
    return {.matches = stats.hit[slot], .verified = stats.verified[slot]};
}

bool same(const sieve_counter& a, const sieve_counter& b) {
    return a.packets == b.packets && a.bytes == b.bytes;
}

json to_json(const sieve_counter& counter) {
    return json::array({counter.packets, counter.bytes});
}

json to_json(const sieve_verified& verified) {
    return json::array({verified.non_members, verified.avoided});
}

json to_json(const HookTotals& totals) {
    return {{"passed", to_json(totals.passed)},
            {"dropped", to_json(totals.dropped)},
            {"redirected", to_json(totals.redirected)},
            {"replied", to_json(totals.replied)},
            {"redirect_failed", totals.redirect_failed},
            {"events_lost", totals.events_lost},
            {"outcome", totals.outcome}};
}

json to_json(const SetTotals& totals) {
    return {{"matches", to_json(totals.matches)}, {"verified", to_json(totals.verified)}};
}

sieve_counter counter_of(const json& value) {
    return {value.at(0).get<std::uint64_t>(), value.at(1).get<std::uint64_t>()};
}

HookTotals hook_totals_of(const json& value) {
    return {.passed = counter_of(value.at("passed")),
            .dropped = counter_of(value.at("dropped")),
            .redirected = counter_of(value.at("redirected")),
            .replied =
                counter_of(value.value("replied", json::array({0, 0}))), // older versions did not count them
            .redirect_failed = value.at("redirect_failed").get<std::uint64_t>(),
            .events_lost = value.at("events_lost").get<std::uint64_t>(),
            .outcome = value.at("outcome").get<std::array<std::uint64_t, SIEVE_OUTCOMES>>()};
}

SetTotals set_totals_of(const json& value) {
    const sieve_counter verified = counter_of(value.at("verified"));
    return {.matches = counter_of(value.at("matches")), .verified = {verified.packets, verified.bytes}};
}

HookId hook_of(const json& value) {
    const auto point = kernel::parse_hook_point(value.at("hook").get<std::string>());
    if (!point) throw std::invalid_argument("hook");
    return {value.at("interface").get<std::string>(), *point};
}

template <class Map>
void forget_oldest_of(Map& states) {
    while (states.size() > most_states)
        states.erase(std::min_element(states.begin(), states.end(), [](const auto& a, const auto& b) {
            return a.second.seen < b.second.seen;
        }));
}

} // namespace

bool Totals::observe(const std::vector<control::Sample>& samples, std::int64_t now) {
    bool anew = false;
    std::map<HookId, std::uint32_t> present;
    for (const control::Sample& sample : samples) {
        const HookId hook{sample.interface, sample.point};
        present.emplace(hook, sample.program_id);
        anew = observe_hook(hook, sample, now) || anew;
        anew = observe_sets(hook, sample, now) || anew;
    }
    // A program that is not there any more has nothing to add.
    for (auto& [hook, state] : hooks_)
        if (state.program_id != 0 && !present.contains(hook)) {
            state.program_id = 0;
            anew = true;
        }
    for (auto& [key, state] : sets_)
        if (!present.contains(key.first)) state.program_id = 0;
    forget_oldest();
    return anew;
}

bool Totals::observe_hook(const HookId& hook, const control::Sample& sample, std::int64_t now) {
    HookState& state = hooks_[hook];
    const HookTotals raw = counted(sample.stats);
    const bool anew = state.program_id != sample.program_id;
    add(state.total, raw, anew ? HookTotals{} : state.raw);
    state.program_id = sample.program_id;
    state.raw = raw;
    state.seen = now;
    return anew;
}

bool Totals::observe_sets(const HookId& hook, const control::Sample& sample, std::int64_t now) {
    bool anew = false;
    // Those that left go first: a set that came may have taken the slot.
    for (auto state = sets_.lower_bound({hook, {}}); state != sets_.end() && state->first.first == hook;
         ++state) {
        SetState& set = state->second;
        if (set.program_id == 0) continue;
        const auto still = std::find_if(
            sample.table.sets.begin(), sample.table.sets.end(), [&](const control::SetStatus& status) {
                return status.set.name == state->first.second && status.set.slot == set.slot &&
                       sample.program_id == set.program_id && same(status.set.baseline, set.baseline);
            });
        if (still != sample.table.sets.end()) continue;
        if (set.program_id == sample.program_id) finish(set, sample);
        set.program_id = 0;
        anew = true;
    }
    for (const control::SetStatus& status : sample.table.sets) {
        const kernel::SetInForce& in_force = status.set;
        SetState& set = sets_[{hook, in_force.name}];
        const SetTotals raw = counted(sample.stats, in_force.slot);
        if (set.program_id == 0) {
            anew = true;
            set.raw = {.matches = in_force.baseline,
                       .verified = status.verified() ? in_force.verified_baseline : raw.verified};
        }
        add(set.total, raw, set.raw);
        set.program_id = sample.program_id;
        set.slot = in_force.slot;
        set.baseline = in_force.baseline;
        set.raw = raw;
        set.seen = now;
    }
    return anew;
}

// Adds what a set that left had counted at the end. Nothing has counted in its slot since then, unless
// another set has the slot; then that set's baseline tells.
void Totals::finish(SetState& set, const control::Sample& sample) {
    SetTotals end = counted(sample.stats, set.slot);
    for (const control::SetStatus& status : sample.table.sets)
        if (status.set.slot == set.slot) {
            end.matches = status.set.baseline;
            if (status.verified()) end.verified = status.set.verified_baseline;
        }
    add(set.total, end, set.raw);
}

void Totals::forget_oldest() {
    forget_oldest_of(hooks_);
    forget_oldest_of(sets_);
}

HookTotals Totals::hook(const HookId& hook) const {
    const auto found = hooks_.find(hook);
    return found == hooks_.end() ? HookTotals{} : found->second.total;
}

SetTotals Totals::set(const HookId& hook, const std::string& set) const {
    const auto found = sets_.find({hook, set});
    return found == sets_.end() ? SetTotals{} : found->second.total;
}

std::string Totals::text(const std::string& boot) const {
    json hooks = json::array(), sets = json::array();
    for (const auto& [hook, state] : hooks_)
        hooks.push_back({{"interface", hook.interface},
                         {"hook", kernel::hook_point_name(hook.point)},
                         {"program_id", state.program_id},
                         {"raw", to_json(state.raw)},
                         {"total", to_json(state.total)},
                         {"seen", state.seen}});
    for (const auto& [key, state] : sets_)
        sets.push_back({{"interface", key.first.interface},
                        {"hook", kernel::hook_point_name(key.first.point)},
                        {"set", key.second},
                        {"program_id", state.program_id},
                        {"slot", state.slot},
                        {"baseline", to_json(state.baseline)},
                        {"raw", to_json(state.raw)},
                        {"total", to_json(state.total)},
                        {"seen", state.seen}});
    const json all = {
        {"counters", text_version}, {"boot", boot}, {"hooks", std::move(hooks)}, {"sets", std::move(sets)}};
    return json_line(all) + "\n";
}

Result<Totals> Totals::read(const std::string& text, const std::string& boot) {
    Totals totals;
    try {
        const json all = parse_json(text);
        if (all.at("counters").get<int>() != text_version)
            return bad_input(fmt::format("counters of version {}, expected {}", all.at("counters").get<int>(),
                                         text_version));
        if (boot.empty() || all.at("boot").get<std::string>() != boot) return totals;
        for (const json& value : all.at("hooks"))
            totals.hooks_[hook_of(value)] = {.program_id = value.at("program_id").get<std::uint32_t>(),
                                             .raw = hook_totals_of(value.at("raw")),
                                             .total = hook_totals_of(value.at("total")),
                                             .seen = value.at("seen").get<std::int64_t>()};
        for (const json& value : all.at("sets")) {
            const auto slot = value.at("slot").get<std::uint32_t>();
            if (slot >= SIEVE_SLOTS) return bad_input(fmt::format("counters: slot {}", slot));
            totals.sets_[{hook_of(value), value.at("set").get<std::string>()}] = {
                .program_id = value.at("program_id").get<std::uint32_t>(),
                .slot = slot,
                .baseline = counter_of(value.at("baseline")),
                .raw = set_totals_of(value.at("raw")),
                .total = set_totals_of(value.at("total")),
                .seen = value.at("seen").get<std::int64_t>()};
        }
    } catch (const std::exception& error) {
        return bad_input(fmt::format("counters: {}", error.what()));
    }
    totals.forget_oldest();
    return totals;
}

} // namespace sieve::service::watching
