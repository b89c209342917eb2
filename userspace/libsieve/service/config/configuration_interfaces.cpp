// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_interfaces.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"
#include "libsieve/util/text/closest_word.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

const Words<sieve_action> pass_or_drop{{"pass", SIEVE_ACTION_PASS}, {"drop", SIEVE_ACTION_DROP}};

Words<kernel::HookPoint> hook_words() {
    Words<kernel::HookPoint> words;
    for (const kernel::HookPoint point : kernel::all_hook_points)
        words.emplace_back(kernel::hook_point_name(point), point);
    return words;
}

Words<kernel::ModeChoice> mode_words() {
    Words<kernel::ModeChoice> words;
    for (const control::ModeWord& mode : control::mode_words) words.emplace_back(mode.word, mode.choice);
    return words;
}

void read_name(Section& section, const KeyContext&, InterfaceConfiguration& entry) {
    const auto name = section.text("name", R"(an interface or a pattern, such as "eth0" or "eth*")");
    if (section.find("name") == nullptr) section.mistake("no name: expected name = \"INTERFACE\"");
    if (!name) return;
    entry.name = *name;
    if (!can_be_interface(*name))
        section.expected(
            *section.find("name"), "name",
            fmt::format("1 to {} characters without blanks and slashes", longest_interface_name));
}

void read_mode(Section& section, const KeyContext&, InterfaceConfiguration& entry) {
    section.choice<kernel::ModeChoice>("mode", mode_words(), entry.mode);
    if (entry.mode != kernel::ModeChoice::automatic && entry.hook != kernel::HookPoint::xdp)
        section.mistake(*section.find("mode"), "mode", "only the hook xdp has modes");
}

void read_replies(Section& section, const KeyContext&, InterfaceConfiguration& entry) {
    if (section.find("replies") == nullptr) return;
    entry.replies = SIEVE_ACTION_DROP;
    section.choice<sieve_action>("replies", pass_or_drop, *entry.replies);
}
void write_replies(TomlText& text, const InterfaceConfiguration& entry) {
    if (entry.replies)
        text.word("replies", control::action_name(*entry.replies));
    else
        text.none("replies", entry.default_action == SIEVE_ACTION_DROP
                                 ? "pass, unless drop is in force already"
                                 : "drop");
}

void read_max_flows(Section& section, const KeyContext&, InterfaceConfiguration& entry) {
    const toml::node* node = section.find("max-flows");
    if (node == nullptr) return;
    const auto flows = node->is_integer() ? node->ref<std::int64_t>() : 0;
    if (flows < 0 || !control::is_flow_count(static_cast<std::uint64_t>(flows)))
        return section.expected(*node, "max-flows", control::flow_counts());
    if (!control::may_let_replies_pass(entry.replies, entry.default_action, entry.hook))
        return section.mistake(*node, "max-flows",
                               "a number of flows is for replies that pass; expected replies = \"pass\"");
    entry.max_flows = static_cast<std::uint64_t>(flows);
}
void write_max_flows(TomlText& text, const InterfaceConfiguration& entry) {
    if (entry.max_flows)
        text.number("max-flows", *entry.max_flows);
    else
        text.none("max-flows", "by the machine's memory");
}

void read_priority(Section& section, const KeyContext&, InterfaceConfiguration& entry) {
    const toml::node* node = section.find("priority");
    if (node == nullptr) return;
    const auto priority = node->is_integer() ? node->ref<std::int64_t>() : 0;
    if (priority < 1 || priority > 65535)
        return section.expected(*node, "priority", "a whole number from 1 to 65535");
    entry.priority = static_cast<std::uint32_t>(priority);
}
void write_priority(TomlText& text, const InterfaceConfiguration& entry) {
    if (entry.priority)
        text.number("priority", *entry.priority);
    else
        text.none("priority", "50, at xdp beside other programs only");
}

void read_chain(Section& section, const KeyContext&, InterfaceConfiguration& entry) {
    const toml::node* node = section.find("chain");
    if (node == nullptr) return;
    if (node->is_string()) entry.chain = kernel::parse_chain(node->ref<std::string>());
    if (!entry.chain)
        section.expected(*node, "chain",
                         R"("none", or a comma list of aborted, drop, pass, tx and redirect)");
    else if (entry.hook != kernel::HookPoint::xdp)
        section.mistake(*node, "chain", "only the hook xdp has a chain");
}
void write_chain(TomlText& text, const InterfaceConfiguration& entry) {
    if (entry.chain)
        text.word("chain", kernel::chain_text(*entry.chain));
    else if (entry.hook == kernel::HookPoint::xdp)
        text.none("chain", "pass, beside other programs");
}

void read_protect(Section& section, const KeyContext&, InterfaceConfiguration& entry) {
    section.members("protect", entry.protect);
    std::vector<AddressRange> ranges;
    for (const std::string& text : entry.protect) ranges.push_back(protected_range(text));
    if (const auto all = control::listed_addresses(ranges, ""); !all)
        section.mistake(*section.find("protect"), "protect", all.error().message);
}

void read_order(Section& section, const KeyContext& context, InterfaceConfiguration& entry) {
    const SetNames& sets = context.sets;
    section.texts("sets", "the name of a set", [&](const toml::node& node, const std::string& name) {
        if (std::find(sets.begin(), sets.end(), name) == sets.end()) {
            const std::string closest = closest_word(name, sets);
            section.mistake(node, "sets",
                            closest.empty() ? fmt::format("there is no table [set.{}]", printable(name, 64))
                                            : fmt::format("there is no table [set.{}], did you mean {}?",
                                                          printable(name, 64), closest));
            return;
        }
        if (std::find(entry.sets.begin(), entry.sets.end(), name) != entry.sets.end())
            return section.mistake(node, "sets", fmt::format("set {} is named twice", name));
        entry.sets.push_back(name);
    });
    const toml::node* node = section.find("sets");
    if (node == nullptr)
        section.mistake("no sets: expected sets = [\"NAME\", ...], in the order in which they are asked");
    else if (node->is_array() && node->as_array()->empty())
        section.mistake(*node, "sets", "empty, expected the name of at least one set");
    else if (entry.sets.size() > SIEVE_MAX_SETS)
        section.mistake(
            *node, "sets",
            fmt::format("{} sets, but the program takes at most {}", entry.sets.size(), SIEVE_MAX_SETS));
}

bool is_for_hook(const toml::table& table, const InterfaceConfiguration& entry) {
    const auto hook = table["hook"].value<std::string_view>();
    return table["name"].value<std::string_view>() == entry.name &&
           hook.value_or(kernel::hook_point_name(kernel::HookPoint::xdp)) ==
               kernel::hook_point_name(entry.hook);
}

} // namespace

bool bind_sets(Mistakes& mistakes, const toml::table& table, const KeyContext& context,
               InterfaceConfiguration& entry, const std::string& place) {
    if (!is_for_hook(table, entry)) return false;
    Section section(mistakes, table, "interface");
    static_cast<void>(section.find("name"));
    static_cast<void>(section.find("hook"));
    for (const auto& [key, node] : table)
        if (const std::string_view name = key.str(); name != "name" && name != "hook" && name != "sets") {
            static_cast<void>(section.find(name));
            section.mistake(
                node, name,
                fmt::format("{} has this hook of {}, so here it gets further sets only; expected {} "
                            "there",
                            place, in_quotes(entry.name), printable(name, 64)));
        }
    read_order(section, context, entry);
    return true;
}

InterfaceConfiguration read_interface(Mistakes& mistakes, const toml::table& table, const KeyContext& context,
                                      const std::vector<InterfaceConfiguration>& before) {
    Section section(mistakes, table, "interface");
    InterfaceConfiguration entry;
    read_keys(interface_keys(), section, context, entry);
    section.finish();
    const toml::node* name = table.get("name");
    const bool twice = std::any_of(before.begin(), before.end(), [&](const InterfaceConfiguration& other) {
        return other.name == entry.name && other.hook == entry.hook;
    });
    if (twice && name != nullptr && name->is_string())
        section.mistake(*name, "name",
                        fmt::format("{} has this hook ({}) in an entry before", in_quotes(entry.name),
                                    kernel::hook_point_name(entry.hook)));
    return entry;
}

bool can_be_interface(const std::string& name) {
    return !name.empty() && name.size() <= longest_interface_name &&
           std::ranges::none_of(name, [](char c) { return is_control(c) || c == ' ' || c == '/'; });
}

const ConfigurationKeys<InterfaceConfiguration>& interface_keys() {
    using Entry = InterfaceConfiguration;
    static const ConfigurationKeys<Entry> keys = {
        {"name", "interface", "an interface, or a pattern such as `eth*`; required", read_name,
         [](TomlText& text, const Entry& entry) { text.word("name", entry.name); }},
        choice_key("hook", "where packets are judged", hook_words(), &Entry::hook),
        {"mode", form_of(mode_words()), "how the XDP hook runs the program", read_mode,
         [](TomlText& text, const Entry& entry) { text.word("mode", word_of(mode_words(), entry.mode)); }},
        choice_key("default", "the verdict on packets that no set decides", pass_or_drop,
                   &Entry::default_action),
        choice_key("unreadable", "the verdict on packets that cannot be read to their end", pass_or_drop,
                   &Entry::unreadable),
        {"replies", form_of(pass_or_drop),
         "what becomes of packets that would be dropped, if they answer what this host began; `pass` if not "
         "given with a default of drop",
         read_replies, write_replies},
        {"max-flows", "number", "how many flows are remembered for replies", read_max_flows, write_max_flows},
        {"priority", "number", "the rank among other programs at the hook", read_priority, write_priority},
        {"chain", "verdicts",
         "the verdicts after which the next program is asked: some of pass, drop, redirect, tx and aborted, "
         "or none",
         read_chain, write_chain},
        flag_key("protect-host",
                 "whether to refuse a table that would drop packets of this host, its gateways, its "
                 "resolvers or its administrators",
                 &Entry::protect_host),
        {"protect", "[address, ...]", "further addresses, prefixes and ranges that may not be dropped",
         read_protect,
         [](TomlText& text, const Entry& entry) { text.key("protect", list_of(entry.protect)); }},
        {"sets", "[name, ...]", "the sets, in the order in which they are asked; 16 at most", read_order,
         [](TomlText& text, const Entry& entry) { text.key("sets", list_of(entry.sets)); }},
        flag_key("join", "whether one lookup answers for all sets of single keys of the same fields",
                 &Entry::join),
    };
    return keys;
}

} // namespace sieve::service
