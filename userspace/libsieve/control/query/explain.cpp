// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/explain.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/packets/carrier.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::control {

namespace {

// The sets that can be asked, each with an action that lets the next one be asked, too, and without its
// condition: what the key says about that is known.
Result<kernel::WantedTable> table_of(Kernel& kernel, const Explanation& explanation,
                                     std::vector<UniqueFd>& maps) {
    const auto open = [&](std::uint32_t id) -> Result<int> {
        if (id == 0) return -1;
        SIEVE_ASSIGN(UniqueFd map, kernel.open_map(id));
        maps.push_back(std::move(map));
        return maps.back().get();
    };
    kernel::WantedTable table;
    for (const SetAnswer& answer : explanation.sets) {
        if (!answer.asked()) continue;
        kernel::WantedSet set{.name = answer.status.set.name, .action = SIEVE_ACTION_COUNT};
        SIEVE_ASSIGN(set.map_fd, open(answer.status.set.map_id));
        SIEVE_ASSIGN(set.exact_fd, open(answer.status.set.exact_id));
        table.sets.push_back(std::move(set));
    }
    if (explanation.joint_id == 0) return table;
    kernel::WantedJoint joint;
    SIEVE_ASSIGN(joint.map_fd, open(explanation.joint_id));
    for (const SetAnswer& answer : explanation.sets) {
        const std::optional<std::uint32_t> number = answer.status.set.joined;
        if (!number) continue;
        joint.sets.resize(std::max<std::size_t>(joint.sets.size(), *number + 1));
        joint.sets[*number] = answer.status.set.name;
    }
    table.joint = std::move(joint);
    return table;
}

void decide(Explanation& explanation) {
    for (std::size_t i = 0; i < explanation.sets.size(); i++) {
        const SetAnswer& answer = explanation.sets[i];
        if (!facts_of(answer.status.set.action).decides || answer.met == Met::no) continue;
        const bool depends = answer.matched && answer.met == Met::depends;
        if (!answer.asked() || depends) explanation.open.push_back(i);
        if (!answer.matched || depends) continue;
        explanation.decided_by = i;
        return;
    }
}

// Where replies pass, a packet that would be dropped may be one.
Status ask_for_replies(Kernel& kernel, const kernel::Hook& hook, sieve_action replies, const sieve_key& key,
                       std::uint32_t fields, Explanation& explanation) {
    if (replies != SIEVE_ACTION_PASS) return {};
    const kernel::SetInForce* const set =
        explanation.decided_by ? &explanation.sets[*explanation.decided_by].status.set : nullptr;
    const bool drops = set != nullptr ? may_drop(set->action) && !set->keeps_replies_out
                                      : explanation.default_action == SIEVE_ACTION_DROP;
    if (!drops) return {};
    explanation.replies = true;
    if (fields == SIEVE_FIELD_ALL) {
        SIEVE_ASSIGN(explanation.is_reply, kernel.is_reply(hook, key));
    }
    return {};
}

} // namespace

bool Explanation::matched() const {
    return std::any_of(sets.begin(), sets.end(), [](const SetAnswer& answer) { return answer.matched; });
}

Result<Explanation> explain(Kernel& kernel, const kernel::Hook& hook, const sieve_key& key,
                            std::uint32_t fields) {
    SIEVE_TRY(kernel.may_load_programs());
    SIEVE_ASSIGN(TableStatus table, read_table_status(kernel, hook));
    Explanation explanation{.default_action = table.default_action,
                            .sets = {},
                            .decided_by = {},
                            .open = {},
                            .is_reply = {},
                            .joint_id = table.joint_id};
    for (SetStatus& set : table.sets) {
        const std::uint32_t lacking = set.filter.lookup.fields & ~fields;
        const Met met = is_met(set.set.condition, key, fields);
        explanation.sets.push_back({.status = std::move(set), .lacking = lacking, .met = met});
    }
    std::vector<UniqueFd> maps;
    SIEVE_ASSIGN(const kernel::WantedTable wanted, table_of(kernel, explanation, maps));
    if (!wanted.sets.empty()) {
        packets::Carrier carrier;
        const auto frame = carrier.carry(key, fields);
        if (frame.empty())
            return bad_input(fmt::format("no packet can have the key {}: {}", format_key(key, fields),
                                         packets::obstacle(key, fields)));
        SIEVE_ASSIGN(const std::unique_ptr<Replayer> replayer, kernel.start_replay(hook.point, wanted));
        SIEVE_ASSIGN(const kernel::Replayed replayed, replayer->run(frame));
        for (SetAnswer& answer : explanation.sets) {
            const kernel::SetInForce* set = replayer->table().find(answer.status.set.name);
            answer.matched = answer.asked() && set != nullptr && (replayed.trace.hits >> set->slot & 1) != 0;
        }
    }
    decide(explanation);
    SIEVE_TRY(ask_for_replies(kernel, hook, table.replies, key, fields, explanation));
    return explanation;
}

Result<std::uint32_t> fields_of_text(const TableStatus& table, const std::string& text) {
    std::set<std::uint32_t> known;
    std::set<std::uint32_t> fitting;
    for (const SetStatus& set : table.sets) {
        known.insert(set.filter.lookup.fields);
        if (parse_key(text, set.filter.lookup.fields)) fitting.insert(set.filter.lookup.fields);
    }
    if (fitting.size() == 1) return *fitting.begin();
    std::vector<std::string> names;
    for (const std::uint32_t fields : fitting.empty() ? known : fitting)
        names.push_back(format_fields(fields));
    if (known.empty()) return SIEVE_FIELD_SRC;
    if (fitting.empty())
        return bad_input(fmt::format("`{}` is no key of the sets in force, whose fields are {}", text,
                                     fmt::join(names, " and ")));
    return invalid_request(
        fmt::format("`{}` may be a key of {}; --key says which", text, fmt::join(names, " or ")));
}

} // namespace sieve::control
