// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/reports/explain_report.hpp"

#include <fmt/format.h>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "xdp-sieve/reports/set_report.hpp"

namespace sieve::cli {

namespace {

SetAction action_of(const control::SetAnswer& answer) {
    return control::action_of(answer.status.set);
}

const FilterKind& kind_of_set(const control::SetAnswer& answer) {
    return sieve::kind_of(answer.status.filter.lookup);
}

// Whether what matches the set is a member for certain.
bool is_exact(const control::SetAnswer& answer) {
    return answer.status.verified() || kind_of_set(answer).exact() != nullptr;
}

// Why the deciding set matches: "member", "false_positive", or "unknown".
std::string reason(const control::SetAnswer& answer, const std::optional<Searched>& searched) {
    if (is_exact(answer) || (searched && searched->found())) return "member";
    return searched && searched->complete() ? "false_positive" : "unknown";
}

std::string reason_text(const control::SetAnswer& answer, const std::optional<Searched>& searched) {
    if (searched && searched->found()) return fmt::format("the key is a member: {}", searched->place);
    const std::string others =
        searched && !searched->complete()
            ? fmt::format("no list that was given has it, and the set was built of {}", searched->all_lists)
            : std::string();
    if (is_exact(answer)) {
        const std::string why = answer.status.verified()
                                    ? "the set is verified"
                                    : fmt::format("kind {} is exact", kind_of_set(answer).facts().name);
        if (!searched) return fmt::format("the key is a member: {}", why);
        return fmt::format("the key is a member: {}, but {}", why,
                           others.empty() ? "the list does not have it: the list has changed" : others);
    }
    const std::string rate = format_rate(answer.status.expected_rate());
    if (!searched) return fmt::format("a member, or a false positive (rate {}): --feed FILE tells", rate);
    if (!others.empty()) return fmt::format("a member, or a false positive (rate {}): {}", rate, others);
    return fmt::format("a false positive, or the list has changed: the list does not have the key (rate {})",
                       rate);
}

std::string answer_text(const control::SetAnswer& answer) {
    if (!answer.asked()) return fmt::format("not asked: it needs {}", format_fields(answer.lacking));
    if (!answer.matched) return "does not match";
    switch (answer.met) {
    case control::Met::no:
        return "holds the key, but only for other packets";
    case control::Met::depends:
        return "holds the key, for some packets";
    case control::Met::yes:
        break;
    }
    return "matches";
}

} // namespace

Result<ExplainedKey> explain_key(const std::string& interface, const std::string& hook,
                                 const std::string& fields, const std::string& text, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName name, parse_hook(interface, hook));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const kernel::Hook found, control::find_ours(kernel, name));
    ExplainedKey explained;
    explained.interface = found.interface.name;
    explained.point = found.point;
    if (fields.empty()) {
        SIEVE_ASSIGN(const control::TableStatus table, control::read_table_status(kernel, found));
        SIEVE_ASSIGN(explained.fields, control::fields_of_text(table, text));
    } else {
        SIEVE_ASSIGN(explained.fields, parse_fields(fields));
    }
    SIEVE_ASSIGN(explained.key, parse_key(text, explained.fields));
    SIEVE_ASSIGN(explained.explanation, control::explain(kernel, found, explained.key, explained.fields));
    return explained;
}

Result<std::optional<Searched>> search_list(const ExplainedKey& explained,
                                            const std::vector<std::string>& feeds) {
    const std::optional<std::size_t> decided = explained.explanation.decided_by;
    if (!decided) return std::optional<Searched>();
    const control::SetAnswer& answer = explained.explanation.sets[*decided];
    if (feeds.empty()) return search_kept_list(answer, explained.key);
    SIEVE_ASSIGN(Searched searched, search_feeds(feeds, answer, explained.key));
    return std::optional(std::move(searched));
}

nlohmann::ordered_json explanation_json(const ExplainedKey& explained,
                                        const std::optional<Searched>& searched) {
    const control::Explanation& explanation = explained.explanation;
    nlohmann::ordered_json out = {{"interface", explained.interface},
                                  {"hook", kernel::hook_point_name(explained.point)},
                                  {"key", format_key(explained.key, explained.fields)},
                                  {"fields", format_fields(explained.fields)},
                                  {"set", nullptr},
                                  {"reason", "default"},
                                  {"place", nullptr},
                                  {"action", action_name(explanation.default_action)},
                                  {"unless", nlohmann::ordered_json::array()},
                                  {"sets", nlohmann::ordered_json::array()}};
    if (!explained.origin.empty()) out["origin"] = explained.origin;
    if (explanation.replies)
        out["reply"] = explanation.is_reply ? nlohmann::ordered_json(*explanation.is_reply)
                                            : nlohmann::ordered_json("perhaps");
    for (const std::size_t i : explanation.open) out["unless"].push_back(explanation.sets[i].status.set.name);
    if (explanation.decided_by) {
        const control::SetAnswer& answer = explanation.sets[*explanation.decided_by];
        out["set"] = answer.status.set.name;
        out["reason"] = reason(answer, searched);
        if (searched && searched->found()) out["place"] = searched->place;
        out["action"] = describe_action(action_of(answer));
    }
    for (const control::SetAnswer& answer : explanation.sets)
        out["sets"].push_back(
            {{"name", answer.status.set.name},
             {"action", describe_action(action_of(answer))},
             {"asked", answer.asked()},
             {"lacking", answer.asked() ? nlohmann::ordered_json()
                                        : nlohmann::ordered_json(format_fields(answer.lacking))},
             {"matched", answer.matched},
             {"condition", control::describe_condition(answer.status.set.condition)},
             {"condition_met", answer.met == control::Met::depends
                                   ? nlohmann::ordered_json("perhaps")
                                   : nlohmann::ordered_json(answer.met == control::Met::yes)},
             {"verified", answer.status.verified()},
             {"expected_rate", answer.status.expected_rate()}});
    return out;
}

void print_explanation(const ExplainedKey& explained, const std::optional<Searched>& searched) {
    const control::Explanation& explanation = explained.explanation;
    const std::string key = format_key(explained.key, explained.fields);
    const std::string where = hook_title(explained.interface, explained.point);
    if (explanation.decided_by) {
        const control::SetAnswer& answer = explanation.sets[*explanation.decided_by];
        print_out("{} at {}: set {} decides ({})\n", key, where, answer.status.set.name,
                  describe_action(action_of(answer)));
        print_out("  {}\n", reason_text(answer, searched));
    } else {
        print_out("{} at {}: no set decides, so the default does ({})\n", key, where,
                  action_name(explanation.default_action));
    }
    if (!explained.origin.empty()) print_out("  of {}\n", fmt::join(explained.origin, ", "));
    if (explanation.replies)
        print_out("  {}\n", !explanation.is_reply
                                ? "unless the packet answers what this host began: replies pass"
                            : *explanation.is_reply
                                ? "but such a packet passes: it answers a flow that this host began"
                                : "replies pass, but such a packet answers no flow that this host began");
    for (const std::size_t i : explanation.open) {
        const control::SetAnswer& answer = explanation.sets[i];
        const std::string& name = answer.status.set.name;
        if (!answer.asked())
            print_out("  unless set {} matches first: the key lacks its {}\n", name,
                      format_fields(answer.lacking));
        else
            print_out("  unless the packet has {}: then set {} decides ({})\n",
                      control::describe_condition(answer.status.set.condition), name,
                      action_name(answer.status.set.action));
    }
    for (const control::SetAnswer& answer : explanation.sets)
        print_out("  {:<31} {:<8} {}\n", answer.status.set.name, describe_action(action_of(answer)),
                  answer_text(answer));
}

} // namespace sieve::cli
