// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_sets.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/choice.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/service/config/configuration_sources.hpp"

namespace sieve::service {

namespace {

// Options of a build that a service does not leave to the configuration: it holds its lists in memory.
constexpr std::string_view not_configured[] = {"seed", "memory-limit"};

constexpr std::chrono::hours longest_refresh{24 * 3650};

void read_action(Section& section, SetConfiguration& set) {
    if (const toml::node* node = section.find("action")) {
        const Result<control::WantedAction> action =
            control::parse_action(node->is_string() ? node->ref<std::string>() : std::string());
        if (action)
            set.action = *action;
        else
            section.expected(
                *node, "action",
                R"("drop", "pass" or "count" (or limit = 1000, or redirect = "INTERFACE|cpu:NUMBER"))");
    }
    if (const toml::node* node = section.find("limit")) {
        const Result<control::WantedAction> limit =
            node->is_string() || node->is_integer()
                ? control::parse_limit(node->is_string() ? node->ref<std::string>() : found(*node))
                : invalid_request("expected a number or a text");
        if (!limit)
            return section.expected(*node, "limit", R"(packets per second, such as 1000 or "1000/2000")");
        if (set.action) return section.mistake(*node, "limit", "the set has an action already");
        set.action = *limit;
    }
    const toml::node* node = section.find("redirect");
    if (node == nullptr) return;
    if (!node->is_string() || node->ref<std::string>().empty())
        return section.expected(*node, "redirect", R"(an interface or "cpu:NUMBER")");
    if (set.action) return section.mistake(*node, "redirect", "the set has an action already");
    set.action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, node->ref<std::string>()};
}

// Only what a set drops can stay dropped.
void read_replies(Section& section, SetConfiguration& set) {
    const toml::node* node = section.find("replies");
    if (node == nullptr) return;
    const std::string word = node->is_string() ? node->ref<std::string>() : std::string();
    if (word != "pass" && word != "drop") return section.expected(*node, "replies", R"("pass" or "drop")");
    set.keeps_replies_out = word == "drop";
    if (set.keeps_replies_out && set.action && !control::may_drop(set.action->action))
        section.mistake(*node, "replies",
                        fmt::format("\"drop\" is for a set that drops or limits, and the set's action is {}",
                                    control::action_name(set.action->action)));
}

// Which packets match: ports, ranges and protocols, one or an array of them.
void read_condition(Section& section, SetConfiguration& set) {
    for (const control::ConditionPart& part : control::condition_parts()) {
        const toml::node* node = section.find(part.name);
        if (node == nullptr) continue;
        std::vector<std::string> values;
        section.elements(part.name, [&](const toml::node& element) {
            if (element.is_string())
                values.push_back(element.ref<std::string>());
            else
                values.push_back(found(element));
        });
        if (const Status done =
                control::set_condition(set.condition, part, fmt::format("{}", fmt::join(values, ",")));
            !done)
            section.mistake(*node, part.name, done.error().message);
    }
    if (const Status right = control::check_condition(set.condition); !right)
        section.mistake(right.error().message);
}

// What is wrong; empty if nothing is.
std::string set_option(const control::BuildOption& option, const toml::node& node, control::FeedSpec& feed) {
    if (option.value == nullptr) {
        if (!node.is_boolean()) return fmt::format("expected true or false, found {}", found(node));
        if (node.ref<bool>()) static_cast<void>(option.set(feed, ""));
        return {};
    }
    std::string text;
    if (node.is_string())
        text = node.ref<std::string>();
    else if (node.is_integer() || node.is_floating_point())
        text = found(node);
    else
        return fmt::format("expected a number or a text, found {}", found(node));
    const Status set = option.set(feed, text);
    return set ? std::string() : fmt::format("{}, found {}", set.error().message, found(node));
}

// The options of `build`, from the one table of them. False if one was wrong.
bool read_build_options(Section& section, SetConfiguration& set) {
    bool right = true;
    for (const control::BuildOption& option : control::build_options()) {
        if (std::ranges::find(not_configured, option.name) != std::end(not_configured)) continue;
        const toml::node* node = section.find(option.name);
        if (node == nullptr) continue;
        const std::string problem = set_option(option, *node, set.feed);
        if (problem.empty()) continue;
        section.mistake(*node, option.name, problem);
        right = false;
    }
    return right;
}

// Exceptions are in a file, relative to the configuration's folder like a source. What changes while it is in
// force cannot promise them.
void check_exceptions(Section& section, const toml::table& table, const std::filesystem::path& folder,
                      SetConfiguration& set) {
    if (set.feed.except.empty()) return;
    const FilterKind& kind = kind_of(set.feed.build.kind.kind);
    if (follows_stream(set))
        return section.mistake(
            *table.get("except"), "except",
            "a set that follows CrowdSec or bans changes while it is in force, so it cannot promise "
            "that exceptions do not match");
    if (kind.facts().changes_live && kind.exact() == nullptr)
        return section.mistake(*table.get("except"), "except",
                               fmt::format("kind {} changes while it is in force, so it cannot promise that "
                                           "exceptions do not match",
                                           kind.facts().name));
    set.feed.except = (folder / set.feed.except).lexically_normal().string();
}

// What was not chosen, and how the options go together.
void fill_in(Section& section, SetConfiguration& set) {
    BuildOptions& build = set.feed.build;
    if (const Status right = check_build_options(build); !right)
        return section.mistake(right.error().message);
    if (set.verify && kind_of(build.kind.kind).exact() != nullptr)
        return section.mistake(
            fmt::format("kind {} is exact, so there is nothing to verify; expected verify = false",
                        kind_name(build.kind.kind)));
    set.feed.chosen.clear(); // it is a feed, whatever was chosen
    // A set whose single keys change is a filter.
    if (follows_bans(set) && build.kind.kind == automatic_kind) build.kind.kind = SIEVE_KIND_DDLCBF;
    if (followed_stream(set) != nullptr && build.kind.kind == automatic_kind)
        build.kind.kind =
            choose_kind(build.kind, {.fpr = build.fpr, .bits_per_key = build.bits_per_key}).facts().number;
    if (build.kind.kind == automatic_kind) return;
    const FilterKind& kind = kind_of(build.kind.kind);
    if (!build.bits_per_key && !build.fpr && !build.memory && kind.exact() == nullptr)
        build.bits_per_key = kind.facts().bits_per_key;
    build.kind.choices = kind.choices_of(build.kind);
    build.kind.rounds = kind.rounds_of(build.kind);
}

void read_guards(Mistakes& mistakes, const toml::table& table, const std::string& key,
                 SetConfiguration& set) {
    Section section(mistakes, table, key);
    GuardLimits& guards = set.guards;
    section.number("most-shrink", 0, 1, "a share", guards.most_shrink);
    section.number("most-growth", 1, 1e9, "a factor", guards.most_growth);
    section.number("most-ipv4", 0, 1, "a share of all IPv4 addresses", guards.most_ipv4);
    section.number("most-ipv6", 0, 1, "a share of all IPv6 addresses", guards.most_ipv6);
    section.flag("protect-host", guards.protect_host);
    section.flag("unchecked-images", guards.unchecked_images);
    section.texts("protect", "an address, a prefix or a range",
                  [&](const toml::node& node, const std::string& text) {
                      if (const auto member = parse_member(text, SIEVE_FIELD_SRC); !member)
                          section.mistake(node, "protect", member.error().message);
                      else
                          guards.protect.push_back(text);
                  });
    constexpr std::pair<std::string_view, bool> words[] = {{"refuse", false}, {"skip", true}};
    section.choice<bool>("own-addresses", words, guards.skip_own);
    section.finish();
}

// An empty list is in force as an exact set.
void check_empty(Section& section, const toml::table& table, const SetConfiguration& set) {
    if (!guards_addresses(set))
        section.mistake(*table.get("empty"), "empty", "only a list of single addresses may be empty");
}

// What CrowdSec and people decide about, their sets can hold.
void check_stream(Section& section, const toml::table& table, const SetConfiguration& set) {
    const std::uint32_t fields = set.feed.fields;
    if (!follows_stream(set) || fields == SIEVE_FIELD_SRC || fields == SIEVE_FIELD_DST) return;
    const toml::node* node = table.get("key");
    if (node != nullptr)
        section.mistake(
            *node, "key",
            fmt::format("expected \"src\" or \"dst\" for a set that follows CrowdSec or bans, found {}",
                        found(*node)));
}

} // namespace

SetConfiguration read_set(Mistakes& mistakes, const std::string& name, const toml::table& table,
                          const std::string& key, const std::filesystem::path& folder,
                          const HttpAccess& defaults, const std::vector<SourceSpec>& geo) {
    Section section(mistakes, table, key);
    SetConfiguration set;
    set.name = name;
    read_sources(section, folder, defaults, geo, set);
    read_action(section, set);
    read_replies(section, set);
    read_condition(section, set);
    section.flag("verify", set.verify);
    section.flag("empty", set.empty);
    section.duration("refresh", longest_refresh, set.refresh);
    const bool options_read = read_build_options(section, set);
    check_stream(section, table, set);
    if (options_read) check_exceptions(section, table, folder, set);
    if (set.feed.allow_wide) set.guards.most_ipv4 = set.guards.most_ipv6 = 1;
    if (const toml::table* guards = section.table("guards"))
        read_guards(mistakes, *guards, section.key("guards"), set);
    section.finish();
    if (options_read) fill_in(section, set);
    if (set.empty) check_empty(section, table, set);
    return set;
}

} // namespace sieve::service
