// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/status_json.hpp"

#include <nlohmann/json.hpp>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/service/monitor/problems.hpp"
#include "libsieve/util/text/json_text.hpp"

namespace sieve::service::watching {

namespace {

using nlohmann::json;

std::int64_t since_1970(Clock::time_point at) {
    return std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
}

json to_json(const std::optional<Clock::time_point>& at) {
    return at ? json(since_1970(*at)) : json();
}

json to_json(const sieve_counter& counter) {
    return {{"packets", counter.packets}, {"bytes", counter.bytes}};
}

json to_json(const TimeSum& time) {
    return {{"count", time.count}, {"seconds", time.sum.count()}, {"last_seconds", time.last.count()}};
}

json to_json(const SetSnapshot& set) {
    const control::SetStatus& status = set.status;
    json out = {{"name", status.set.name},
                {"action", control::describe_action(control::action_of(status.set))},
                {"kind", kind_name(status.filter.lookup.kind)},
                {"key", format_fields(status.filter.lookup.fields)},
                {"keys", status.filter.file.keys},
                {"bits_per_key", status.bits_per_key()},
                {"filter_bytes", status.filter.bytes},
                {"expected_rate", status.expected_rate()},
                {"built_at", status.filter.file.built_at},
                {"changed_keys", status.filter.file.changes},
                {"identity", status.identity()},
                {"label", reinterpret_cast<const char*>(status.filter.file.label)},
                {"matched", to_json(set.totals.matches)}};
    if (set.verified)
        out["verify"] = {{"exact_bytes", status.exact_bytes},
                         {"non_members", set.verified->counted.non_members},
                         {"avoided", set.verified->counted.avoided},
                         {"rate", set.verified->rate()}};
    return out;
}

json to_json(const HookSnapshot& hook) {
    const control::TableStatus& table = hook.sample.table;
    json outcomes = json::object(), sets = json::array();
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++)
        outcomes[kernel::outcome_name(i)] = hook.totals.outcome[i];
    for (const SetSnapshot& set : hook.sets) sets.push_back(to_json(set));
    json out = {{"interface", hook.id.interface},
                {"hook", kernel::hook_point_name(hook.id.point)},
                {"program_id", hook.sample.program_id},
                {"default", control::action_name(table.default_action)},
                {"unreadable", control::action_name(table.unreadable)},
                {"replies", control::action_name(table.replies)},
                {"passed", to_json(hook.totals.passed)},
                {"dropped", to_json(hook.totals.dropped)},
                {"redirected", to_json(hook.totals.redirected)},
                {"replied", to_json(hook.totals.replied)},
                {"redirect_failed", hook.totals.redirect_failed},
                {"events_lost", hook.totals.events_lost},
                {"outcomes", std::move(outcomes)},
                {"sets", std::move(sets)}};
    if (const auto& replies = hook.sample.replies) {
        json& flows = out["flows"] = {{"noting", replies->noting},
                                      {"begun", replies->counts.begun},
                                      {"evicted", replies->counts.evicted},
                                      {"refused", replies->counts.refused},
                                      {"lost", replies->counts.lost}};
        if (replies->memory) {
            flows["max_flows"] = replies->memory->max_flows;
            flows["bytes"] = replies->memory->bytes;
            flows["load"] = replies->memory->load();
        }
    }
    if (hook.top_keys) {
        json keys = json::array();
        for (const control::TopKey& key : hook.top_keys->keys)
            keys.push_back({{"set", key.set},
                            {"key", format_key(key.key, key.fields)},
                            {"packets", key.packets},
                            {"share", hook.top_keys->share(key)}});
        out["top_keys"] = {
            {"since", hook.top_keys->since}, {"matches", hook.top_keys->matches}, {"keys", std::move(keys)}};
    }
    return out;
}

json to_json(const std::string& name, const SetHistory& set) {
    json refreshes = json::object(), refusals = json::object();
    for (const SetOutcome outcome : all_outcomes)
        refreshes[outcome_name(outcome)] = set.refreshes[static_cast<std::size_t>(outcome)];
    for (const Guard guard : all_guards)
        refusals[guard_name(guard)] = set.refusals[static_cast<std::size_t>(guard)];
    json out = {{"set", name},
                {"refreshes", std::move(refreshes)},
                {"refusals", std::move(refusals)},
                {"confirmed", to_json(last_confirmed(set))},
                {"fetching", to_json(set.fetching)},
                {"building", to_json(set.building)},
                {"testing", to_json(set.testing)},
                {"live_changes", set.live_changes},
                {"live_inserted", set.live_inserted},
                {"live_deleted", set.live_deleted}};
    if (set.last)
        out["last"] = {{"result", outcome_name(set.last->result)},
                       {"at", since_1970(set.last->at)},
                       {"guard", set.last->guard ? json(guard_name(*set.last->guard)) : json()},
                       {"message", set.last->message}};
    if (set.last_good)
        out["last_good"] = {{"identity", set.last_good->identity}, {"entries", *entries_of(set)},
                            {"keys", set.last_good->keys},         {"skipped", set.last_good->skipped},
                            {"bytes", set.last_good->bytes},       {"built_at", set.last_good->built_at}};
    return out;
}

json to_json(const FleetStanding& fleet) {
    const auto stage = [](std::uint32_t number) { return number == 0 ? json() : json(number); };
    const auto serial = [](std::uint64_t number) { return number == 0 ? json() : json(number); };
    return {{"fleet", fleet.fleet},
            {"node", fleet.node},
            {"state", fleet_state_name(fleet.state)},
            {"error", fleet.error},
            {"last_error", fleet.last_error},
            {"last_error_at", to_json(fleet.last_error_at)},
            {"failures", fleet.failures},
            {"contact", to_json(fleet.contact)},
            {"manifest", fleet.manifest},
            {"in_force", serial(fleet.in_force)},
            {"wanted", serial(fleet.wanted)},
            {"published", serial(fleet.published)},
            {"valid_until", to_json(fleet.valid_until)},
            {"rollout", fleet.rollout.empty() ? json() : json(fleet.rollout)},
            {"stage", stage(fleet.stage)},
            {"stages", stage(fleet.stages)},
            {"own_stage", stage(fleet.own_stage)}};
}

} // namespace

std::string status_json(const Snapshot& snapshot) {
    const StatisticsCopy& record = snapshot.record;
    json hooks = json::array(), lists = json::array(), problems = json::array();
    for (const HookSnapshot& hook : snapshot.hooks) hooks.push_back(to_json(hook));
    for (const auto& [name, set] : record.sets) lists.push_back(to_json(name, set));
    for (const Problem& problem : problems_of(snapshot))
        problems.push_back({{"severity", problem.severity == Severity::failure ? "failure" : "warning"},
                            {"kind", problem.kind},
                            {"subject", problem.subject},
                            {"text", problem.text}});
    const json all = {{"version", record.version},
                      {"at", since_1970(snapshot.at)},
                      {"started", since_1970(record.started)},
                      {"state", daemon_state_name(record.state)},
                      {"problems", std::move(problems)},
                      {"hooks", std::move(hooks)},
                      {"lists", std::move(lists)},
                      {"fleet", record.fleet ? to_json(*record.fleet) : json()},
                      {"cycles",
                       {{"count", record.cycles},
                        {"changed", record.cycles_changed},
                        {"failed", record.cycles_failed},
                        {"last", to_json(record.last_cycle)}}},
                      {"process",
                       {{"cpu_seconds", snapshot.process.cpu_seconds},
                        {"resident_bytes", snapshot.process.resident_bytes},
                        {"open_files", snapshot.process.open_files}}}};
    // Names and messages may hold any bytes.
    return json_text(all) + "\n";
}

} // namespace sieve::service::watching
