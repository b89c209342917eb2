// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_interfaces.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"
#include "libsieve/util/closest_word.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

constexpr std::size_t longest_interface_name = 15; // IFNAMSIZ - 1

constexpr std::array<std::pair<std::string_view, sieve_action>, 2> pass_or_drop{
    {{"pass", SIEVE_ACTION_PASS}, {"drop", SIEVE_ACTION_DROP}}};

void read_hook(Section& section, InterfaceConfiguration& entry) {
    std::vector<std::pair<std::string_view, kernel::HookPoint>> words;
    for (const kernel::HookPoint point : kernel::all_hook_points)
        words.emplace_back(kernel::hook_point_name(point), point);
    section.choice<kernel::HookPoint>("hook", words, entry.hook);
}

void read_mode(Section& section, InterfaceConfiguration& entry) {
    std::vector<std::pair<std::string_view, kernel::ModeChoice>> words;
    for (const control::ModeWord& mode : control::mode_words) words.emplace_back(mode.word, mode.choice);
    section.choice<kernel::ModeChoice>("mode", words, entry.mode);
    if (entry.mode != kernel::ModeChoice::automatic && entry.hook != kernel::HookPoint::xdp)
        section.mistake(*section.find("mode"), "mode", "only the hook xdp has modes");
}

void read_replies(Section& section, InterfaceConfiguration& entry) {
    sieve_action replies = SIEVE_ACTION_DROP;
    if (section.find("replies") != nullptr) {
        section.choice<sieve_action>("replies", pass_or_drop, replies);
        entry.replies = replies;
    }
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

void read_rank(Section& section, InterfaceConfiguration& entry) {
    if (const toml::node* node = section.find("priority")) {
        const auto priority = node->is_integer() ? node->ref<std::int64_t>() : 0;
        if (priority < 1 || priority > 65535)
            section.expected(*node, "priority", "a whole number from 1 to 65535");
        else
            entry.priority = static_cast<std::uint32_t>(priority);
    }
    const toml::node* node = section.find("chain");
    if (node == nullptr) return;
    if (node->is_string()) entry.chain = kernel::parse_chain(node->ref<std::string>());
    if (!entry.chain)
        section.expected(*node, "chain",
                         R"("none", or a comma list of aborted, drop, pass, tx and redirect)");
    else if (entry.hook != kernel::HookPoint::xdp)
        section.mistake(*node, "chain", "only the hook xdp has a chain");
}

void read_protect(Section& section, InterfaceConfiguration& entry) {
    std::vector<AddressRange> ranges;
    section.texts("protect", "an address, a prefix or a range",
                  [&](const toml::node& node, const std::string& text) {
                      if (const auto member = parse_member(text, SIEVE_FIELD_SRC); !member)
                          return section.mistake(node, "protect", member.error().message);
                      entry.protect.push_back(text);
                      ranges.push_back(protected_range(text));
                  });
    if (const auto all = control::listed_addresses(ranges, ""); !all)
        section.mistake(*section.find("protect"), "protect", all.error().message);
}

void read_order(Section& section, const toml::table& table, const SetNames& sets,
                InterfaceConfiguration& entry) {
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
    const toml::node* node = table.get("sets");
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

bool bind_sets(Mistakes& mistakes, const toml::table& table, const SetNames& sets,
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
    read_order(section, table, sets, entry);
    return true;
}

InterfaceConfiguration read_interface(Mistakes& mistakes, const toml::table& table, const SetNames& sets,
                                      const std::vector<InterfaceConfiguration>& before) {
    Section section(mistakes, table, "interface");
    InterfaceConfiguration entry;
    const auto name = section.text("name", R"(an interface or a pattern, such as "eth0" or "eth*")");
    if (table.get("name") == nullptr) section.mistake("no name: expected name = \"INTERFACE\"");
    if (name) {
        entry.name = *name;
        if (name->empty() || name->size() > longest_interface_name ||
            std::any_of(name->begin(), name->end(),
                        [](char c) { return is_control(c) || c == ' ' || c == '/'; }))
            section.expected(
                *table.get("name"), "name",
                fmt::format("1 to {} characters without blanks and slashes", longest_interface_name));
    }
    read_hook(section, entry);
    read_mode(section, entry);
    section.choice<sieve_action>("default", pass_or_drop, entry.default_action);
    section.choice<sieve_action>("unreadable", pass_or_drop, entry.unreadable);
    read_replies(section, entry);
    read_rank(section, entry);
    section.flag("protect-host", entry.protect_host);
    read_protect(section, entry);
    read_order(section, table, sets, entry);
    section.flag("join", entry.join);
    section.finish();
    const bool twice = std::any_of(before.begin(), before.end(), [&](const InterfaceConfiguration& other) {
        return other.name == entry.name && other.hook == entry.hook;
    });
    if (twice && name)
        section.mistake(*table.get("name"), "name",
                        fmt::format("{} has this hook ({}) in an entry before", in_quotes(*name),
                                    kernel::hook_point_name(entry.hook)));
    return entry;
}

} // namespace sieve::service
