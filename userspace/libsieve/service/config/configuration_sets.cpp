// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_sets.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/service/config/configuration_interfaces.hpp"
#include "libsieve/service/config/configuration_sources.hpp"

namespace sieve::service {

namespace {

// Options of a build that a service does not leave to the configuration: it holds its lists in memory.
constexpr std::string_view not_configured[] = {"seed", "memory-limit"};

constexpr std::chrono::hours longest_refresh{24 * 3650};

// Each in quotation marks.
std::vector<std::string> action_words() {
    std::vector<std::string> words;
    for (const control::ActionFacts& facts : control::set_actions())
        if (facts.by_name) words.push_back(in_quotes(facts.name));
    return words;
}

void read_action(Section& section, const KeyContext&, SetConfiguration& set) {
    const toml::node* node = section.find("action");
    if (node == nullptr) return;
    const Result<control::WantedAction> action =
        control::parse_action(node->is_string() ? node->ref<std::string>() : std::string());
    if (!action)
        return section.expected(*node, "action",
                                fmt::format("{} (or limit = 1000, or redirect = \"INTERFACE|cpu:NUMBER\")",
                                            alternatives(action_words())));
    set.action = *action;
}
void write_action(TomlText& text, const SetConfiguration& set) {
    if (!set.action)
        text.none("action", "the opposite of the interface's default");
    else if (set.action->action != SIEVE_ACTION_LIMIT && set.action->target.empty())
        text.word("action", control::action_name(set.action->action));
}

void read_limit(Section& section, const KeyContext&, SetConfiguration& set) {
    const toml::node* node = section.find("limit");
    if (node == nullptr) return;
    const Result<control::WantedAction> limit =
        node->is_string() || node->is_integer()
            ? control::parse_limit(node->is_string() ? node->ref<std::string>() : found(*node))
            : invalid_request("expected a number or a text");
    if (!limit) return section.expected(*node, "limit", R"(packets per second, such as 1000 or "1000/2000")");
    if (set.action) return section.mistake(*node, "limit", "the set has an action already");
    set.action = *limit;
}
void write_limit(TomlText& text, const SetConfiguration& set) {
    if (set.action && set.action->action == SIEVE_ACTION_LIMIT)
        text.word("limit", fmt::format("{}/{}", set.action->limit.rate, set.action->limit.burst));
}

void read_redirect(Section& section, const KeyContext&, SetConfiguration& set) {
    const toml::node* node = section.find("redirect");
    if (node == nullptr) return;
    if (!node->is_string() || !can_be_interface(node->ref<std::string>()))
        return section.expected(*node, "redirect", R"(an interface or "cpu:NUMBER")");
    if (set.action) return section.mistake(*node, "redirect", "the set has an action already");
    set.action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, node->ref<std::string>()};
}
void write_redirect(TomlText& text, const SetConfiguration& set) {
    if (set.action && !set.action->target.empty()) text.word("redirect", set.action->target);
}

const Words<bool> replies_words{{"pass", false}, {"drop", true}}; // whether replies are kept out

// Only what a set drops can stay dropped.
void read_replies(Section& section, const KeyContext&, SetConfiguration& set) {
    section.choice<bool>("replies", replies_words, set.keeps_replies_out);
    if (set.keeps_replies_out && set.action && !control::may_drop(set.action->action))
        section.mistake(*section.find("replies"), "replies",
                        fmt::format("\"drop\" is for a set that drops or limits, and the set's action is {}",
                                    control::action_name(set.action->action)));
}

std::string lower_case(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

// Which packets match: ports, ranges and protocols, one or an array of them.
ConfigurationKey<SetConfiguration> condition_key(const control::ConditionPart& part) {
    return {part.name, lower_case(part.value), part.help,
            [&part](Section& section, const KeyContext&, SetConfiguration& set) {
                const toml::node* node = section.find(part.name);
                if (node == nullptr) return;
                std::vector<std::string> values;
                section.elements(part.name, [&](const toml::node& element) {
                    values.push_back(element.is_string() ? element.ref<std::string>() : found(element));
                });
                if (const Status done = control::set_condition(set.condition, part,
                                                               fmt::format("{}", fmt::join(values, ",")));
                    !done)
                    section.mistake(*node, part.name, done.error().message);
            },
            [&part](TomlText& text, const SetConfiguration& set) {
                if ((set.condition.fields & part.field) != 0)
                    text.key(part.name, list_of(condition_values(set.condition, part)));
                else
                    text.none(part.name, "any");
            }};
}

ConfigurationKeys<SetConfiguration> condition_keys() {
    ConfigurationKeys<SetConfiguration> keys;
    for (const control::ConditionPart& part : control::condition_parts()) keys.push_back(condition_key(part));
    return keys;
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

// The value that an option has.
struct WriteValue {
    TomlText& text;
    std::string_view name;

    void operator()(std::monostate) const {}
    void operator()(control::Unset unset) const { text.none(name, unset.meaning); }
    void operator()(bool value) const { text.flag(name, value); }
    void operator()(std::uint64_t value) const { text.key(name, whole_of(value)); }
    void operator()(double value) const { text.number(name, value); }
    void operator()(const std::string& value) const { text.word(name, value); }
};

ConfigurationKey<SetConfiguration> build_key(const control::BuildOption& option) {
    return {option.name, option.value == nullptr ? "true | false" : lower_case(option.value), option.help,
            [&option](Section& section, const KeyContext&, SetConfiguration& set) {
                const toml::node* node = section.find(option.name);
                if (node == nullptr) return;
                if (const std::string problem = set_option(option, *node, set.feed); !problem.empty())
                    section.mistake(*node, option.name, problem);
            },
            [&option](TomlText& text, const SetConfiguration& set) {
                std::visit(WriteValue{text, option.name}, option.value_of(set.feed));
            }};
}

ConfigurationKeys<SetConfiguration> keys_of_options(bool (*wanted)(const control::BuildOption&)) {
    ConfigurationKeys<SetConfiguration> keys;
    for (const control::BuildOption& option : control::build_options())
        if (std::ranges::find(not_configured, option.name) == std::end(not_configured) && wanted(option))
            keys.push_back(build_key(option));
    return keys;
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
    const bool has_size = build.bits_per_key || build.fpr || build.memory;
    if (follows_stream(set) && build.kind.kind == automatic_kind && !has_size)
        build.kind.kind = SIEVE_KIND_EXACT; // single addresses that come and go
    if (build.kind.kind == automatic_kind) return;
    const FilterKind& kind = kind_of(build.kind.kind);
    if (!has_size && kind.exact() == nullptr) build.bits_per_key = kind.facts().bits_per_key;
    build.kind.choices = kind.choices_of(build.kind);
    build.kind.rounds = kind.rounds_of(build.kind);
}

// An empty list is in force as an exact set.
void check_empty(Section& section, const toml::table& table, const SetConfiguration& set) {
    if (!guards_addresses(set))
        section.mistake(*table.get("empty"), "empty", "only a list of single addresses may be empty");
}

// What CrowdSec and people decide about, their sets can hold.
void check_stream(Section& section, const toml::table& table, const SetConfiguration& set) {
    if (!follows_stream(set)) return;
    const std::uint32_t fields = set.feed.fields;
    const toml::node* key = table.get("key");
    if (key != nullptr && fields != SIEVE_FIELD_SRC && fields != SIEVE_FIELD_DST)
        section.mistake(
            *key, "key",
            fmt::format("expected \"src\" or \"dst\" for a set that follows CrowdSec or bans, found {}",
                        found(*key)));
    if (set.verify)
        section.mistake(
            *table.get("verify"), "verify",
            "a set that follows CrowdSec or bans is exact, so there is nothing to verify; expected "
            "verify = false");
    for (const char* size : {"fpr", "memory"})
        if (table.contains(size))
            section.mistake(*table.get(size), size,
                            "a set that follows CrowdSec or bans is exact, and its size follows its list");
}

const Words<bool> own_address_words{{"refuse", false}, {"skip", true}};

} // namespace

const ConfigurationKeys<GuardLimits>& guard_keys() {
    static const ConfigurationKeys<GuardLimits> keys = {
        number_key("most-shrink", "share",
                   "the share of its entries, and of the addresses it covers, that a list may lose at once",
                   0, 1, "a share", &GuardLimits::most_shrink),
        number_key("most-growth", "factor", "by which factor a list may grow at once", 1, 1e9, "a factor",
                   &GuardLimits::most_growth),
        number_key("most-ipv4", "share", "the share of all IPv4 addresses that the list may cover", 0, 1,
                   "a share of all IPv4 addresses", &GuardLimits::most_ipv4),
        number_key("most-ipv6", "share", "the share of all IPv6 addresses that the list may cover", 0, 1,
                   "a share of all IPv6 addresses", &GuardLimits::most_ipv6),
        flag_key("protect-host",
                 "whether to refuse addresses that this host depends on, in a set that drops or redirects",
                 &GuardLimits::protect_host),
        {"protect", "[address, ...]", "further addresses, prefixes and ranges that such a set must not hold",
         [](Section& section, const KeyContext&, GuardLimits& guards) {
             section.members("protect", guards.protect);
         },
         [](TomlText& text, const GuardLimits& guards) { text.key("protect", list_of(guards.protect)); }},
        choice_key("own-addresses",
                   "what becomes of a list with a protected address: refused, or taken without that address",
                   own_address_words, &GuardLimits::skip_own),
        flag_key("unchecked-images", "whether to take an image that does not say what it covers",
                 &GuardLimits::unchecked_images),
    };
    return keys;
}

const ConfigurationKeys<SetConfiguration>& action_keys() {
    static const ConfigurationKeys<SetConfiguration> keys = joined<SetConfiguration>({
        {{"action", "action", "what a match does, such as `drop`", read_action, write_action},
         {"limit", R"(rate | "RATE/BURST")",
          "how many matches a second take the default, and how many at once; those over it are dropped",
          read_limit, write_limit},
         {"redirect", R"(interface | "cpu:NUMBER")", "where matches are sent, in place of an action",
          read_redirect, write_redirect},
         {"replies", form_of(replies_words),
          "`drop`: what the set drops stays dropped, even if it answers what this host began", read_replies,
          [](TomlText& text, const SetConfiguration& set) {
              text.word("replies", word_of(replies_words, set.keeps_replies_out));
          }}},
        condition_keys(),
    });
    return keys;
}

const ConfigurationKeys<SetConfiguration>& set_keys() {
    static const ConfigurationKeys<SetConfiguration> keys = joined<SetConfiguration>({
        {sources_key()},
        action_keys(),
        {flag_key("verify",
                  "whether an exact set of the keys backs the filter, so that there is no false positive",
                  &SetConfiguration::verify),
         flag_key("empty", "whether the list may have no entry", &SetConfiguration::empty),
         time_key("refresh", "the longest time between two visits of the daemon to the sources",
                  longest_refresh, &SetConfiguration::refresh)},
    });
    return keys;
}

const ConfigurationKeys<SetConfiguration>& build_keys() {
    static const auto keys = keys_of_options([](const control::BuildOption&) { return true; });
    return keys;
}

const ConfigurationKeys<SetConfiguration>& deciding_keys() {
    static const auto keys =
        keys_of_options([](const control::BuildOption& option) { return option.decides; });
    return keys;
}

SetConfiguration read_set(Mistakes& mistakes, const std::string& name, const toml::table& table,
                          const std::string& key, const KeyContext& context) {
    Section section(mistakes, table, key);
    SetConfiguration set;
    set.name = name;
    read_keys(set_keys(), section, context, set);
    if (const Status right = control::check_condition(set.condition); !right)
        section.mistake(right.error().message);
    const std::size_t mistakes_before = mistakes.size();
    read_keys(build_keys(), section, context, set);
    const bool options_read = mistakes.size() == mistakes_before;
    check_stream(section, table, set);
    if (options_read) check_exceptions(section, table, context.folder, set);
    if (set.feed.allow_wide) set.guards.most_ipv4 = set.guards.most_ipv6 = 1;
    if (const toml::table* guards = section.table("guards")) {
        Section inner(mistakes, *guards, section.key("guards"));
        read_keys(guard_keys(), inner, context, set.guards);
        inner.finish();
    }
    section.finish();
    if (options_read) fill_in(section, set);
    if (set.empty) check_empty(section, table, set);
    return set;
}

} // namespace sieve::service
