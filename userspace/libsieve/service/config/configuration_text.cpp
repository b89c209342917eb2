// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_text.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"
#include "libsieve/service/config/duration.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

// A basic string of TOML.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += fmt::format("\\{}", c);
        else if (is_control(c))
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            out += c;
    }
    return out + '"';
}

std::string list_of(const std::vector<std::string>& texts) {
    std::vector<std::string> all;
    for (const std::string& text : texts) all.push_back(quoted(text));
    return fmt::format("[{}]", fmt::join(all, ", "));
}

class Text {
  public:
    void line(const std::string& text) { out_ += text + '\n'; }
    void key(std::string_view name, const std::string& value) {
        out_ += fmt::format("{} = {}\n", name, value);
    }
    void word(std::string_view name, const std::string& value) { key(name, quoted(value)); }
    template <class T>
    void number(std::string_view name, T value) {
        key(name, fmt::format("{}", value));
    }
    void flag(std::string_view name, bool value) { key(name, value ? "true" : "false"); }
    // A key that has no default that could be written.
    void none(std::string_view name, std::string_view meaning) {
        out_ += fmt::format("# {}: {}\n", name, meaning);
    }
    [[nodiscard]] std::string take() { return std::move(out_); }

  private:
    std::string out_;
};

// TOML's integers have a sign; what is larger is a text.
std::string whole_of(std::uint64_t value) {
    const std::string digits = fmt::format("{}", value);
    return value > std::numeric_limits<std::int64_t>::max() ? quoted(digits) : digits;
}

std::string limits_of(const FetchLimits& limits) {
    return fmt::format("timeout = {}, most-bytes = {}", quoted(duration_text(limits.timeout)),
                       whole_of(limits.most_bytes));
}

std::string text_of(const FileSpec& file) {
    return quoted(file.path);
}
// A folder is told by its last character.
std::string text_of(const FolderSpec& folder) {
    return quoted(folder.path.ends_with('/') ? folder.path : folder.path + '/');
}
std::string text_of(const GlobSpec& glob) {
    return quoted(glob.pattern);
}
// `between` stands between two keys.
std::string server_access_of(const ServerAccess& access, std::string_view between) {
    return fmt::format("certificates = {1}{0}client-certificate = {2}{0}client-key = {3}", between,
                       quoted(access.certificates), quoted(access.client_certificate),
                       quoted(access.client_key));
}
std::string way_of(const HttpAccess& access, std::string_view between) {
    return fmt::format("proxy = {1}{0}proxy-username = {2}{0}proxy-password-file = {3}{0}user-agent = {4}",
                       between, quoted(access.proxy.url), quoted(access.proxy.username),
                       quoted(access.proxy.password_file), quoted(access.user_agent));
}
std::string access_of(const HttpAccess& access) {
    return fmt::format("{}, header-file = {}, username = {}, password-file = {}, {}",
                       server_access_of(access.server, ", "), quoted(access.header_file),
                       quoted(access.username), quoted(access.password_file), way_of(access, ", "));
}
std::string text_of(const HttpSpec& http) {
    return fmt::format("{{ url = {}, {}, image = {}, {} }}", quoted(http.url), access_of(http.access),
                       http.image, limits_of(http.limits));
}
std::string text_of(const CommandSpec& command) {
    return fmt::format("{{ command = {}, user = {}, image = {}, {} }}", list_of(command.arguments),
                       quoted(command.user), command.image, limits_of(command.limits));
}
std::string text_of(const CrowdsecSpec& crowdsec) {
    return fmt::format("{{ crowdsec = {}, key-file = {}, types = {}, scopes = {}, origins = {}, "
                       "scenarios-containing = {}, scenarios-not-containing = {}, poll = {}, "
                       "usage-metrics = {}, {} }}",
                       quoted(crowdsec.url), quoted(crowdsec.key_file), list_of(crowdsec.types),
                       list_of(crowdsec.scopes), list_of(crowdsec.origins),
                       list_of(crowdsec.scenarios_containing), list_of(crowdsec.scenarios_not_containing),
                       quoted(duration_text(crowdsec.poll)), crowdsec.usage_metrics,
                       access_of(crowdsec.access));
}

std::string text_of(const BanSpec&) {
    return quoted(ban_source);
}

// On one line if there is at most one source, else each on a line of its own.
std::string sources_of(const std::vector<SourceSpec>& sources) {
    std::vector<std::string> all;
    for (const SourceSpec& source : sources)
        all.push_back(std::visit([](const auto& one) { return text_of(one); }, source));
    if (all.size() < 2) return fmt::format("[{}]", fmt::join(all, ""));
    return fmt::format("[\n    {},\n]", fmt::join(all, ",\n    "));
}

void write_build_options(Text& text, const control::FeedSpec& feed) {
    const BuildOptions& build = feed.build;
    const KindFacts& facts = kind_of(build.kind.kind).facts();
    text.word("key", format_fields(feed.fields));
    text.word("format", format_list_format(feed.format));
    const bool automatic = build.kind.kind == automatic_kind;
    text.word("kind", automatic ? "auto" : facts.name);
    if (build.fpr) text.number("fpr", *build.fpr);
    if (build.memory) text.key("memory", whole_of(*build.memory));
    const auto number_or = [&](std::string_view name, const auto& value, bool taken,
                               std::string_view meaning) {
        if (value)
            text.number(name, *value);
        else if (taken)
            text.none(name, meaning);
    };
    number_or("bits-per-key", build.bits_per_key, automatic && !build.fpr && !build.memory,
              "as the kind needs");
    number_or("choices", build.kind.choices, automatic, "as the kind has them");
    number_or("alpha", build.kind.alpha, automatic || facts.takes_alpha, "every key has a choice");
    number_or("hashes", build.kind.hashes, automatic || facts.takes_hashes, "the best number");
    text.word("effort", effort_name(build.kind.effort));
    number_or("rounds", build.kind.rounds, automatic, "as the effort asks");
    text.number("max-probes", build.prefixes.max_probes);
    text.key("max-keys", whole_of(build.prefixes.max_keys));
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        const char* const name = family == SIEVE_FAMILY_V4 ? "v4-lengths" : "v6-lengths";
        const std::vector<std::uint32_t>& lengths = build.prefixes.lengths[family];
        if (lengths.empty())
            text.none(name, "as the list leads to");
        else
            text.word(name, control::format_lengths(lengths, family));
    }
    text.flag("skip-invalid", feed.skip_invalid);
    text.word("host-bits", feed.mask_host_bits ? "mask" : "refuse");
    text.flag("allow-wide", feed.allow_wide);
    if (feed.except.empty())
        text.none("except", "nothing");
    else
        text.word("except", feed.except);
}

void write_guards(Text& text, const GuardLimits& guards) {
    text.number("most-shrink", guards.most_shrink);
    text.number("most-growth", guards.most_growth);
    text.number("most-ipv4", guards.most_ipv4);
    text.number("most-ipv6", guards.most_ipv6);
    text.flag("protect-host", guards.protect_host);
    text.key("protect", list_of(guards.protect));
    text.word("own-addresses", guards.skip_own ? "skip" : "refuse");
    text.flag("unchecked-images", guards.unchecked_images);
}

void write_set(Text& text, const SetConfiguration& set) {
    text.line(fmt::format("\n[set.{}]", quoted(set.name)));
    text.key("sources", sources_of(set.sources));
    if (!set.action)
        text.none("action", "the opposite of the interface's default");
    else if (set.action->action == SIEVE_ACTION_LIMIT)
        text.word("limit", fmt::format("{}/{}", set.action->limit.rate, set.action->limit.burst));
    else if (set.action->target.empty())
        text.word("action", control::action_name(set.action->action));
    else
        text.word("redirect", set.action->target);
    text.word("replies", set.keeps_replies_out ? "drop" : "pass");
    for (const control::ConditionPart& part : control::condition_parts())
        if ((set.condition.fields & part.field) != 0)
            text.key(part.name, list_of(condition_values(set.condition, part)));
        else
            text.none(part.name, "any");
    text.flag("verify", set.verify);
    text.flag("empty", set.empty);
    text.word("refresh", duration_text(set.refresh));
    write_build_options(text, set.feed);
    if (set.feed.build.threads != 0)
        text.number("threads", set.feed.build.threads);
    else
        text.none("threads", "as many as processors");
    text.line(fmt::format("\n[set.{}.guards]", quoted(set.name)));
    write_guards(text, set.guards);
}

void write_interface(Text& text, const InterfaceConfiguration& entry) {
    text.line("\n[[interface]]");
    text.word("name", entry.name);
    text.word("hook", kernel::hook_point_name(entry.hook));
    for (const control::ModeWord& mode : control::mode_words)
        if (mode.choice == entry.mode) text.word("mode", std::string(mode.word));
    text.word("default", control::action_name(entry.default_action));
    text.word("unreadable", control::action_name(entry.unreadable));
    if (entry.replies)
        text.word("replies", control::action_name(*entry.replies));
    else
        text.none("replies", entry.default_action == SIEVE_ACTION_DROP
                                 ? "pass, unless drop is in force already"
                                 : "drop");
    if (entry.max_flows)
        text.number("max-flows", *entry.max_flows);
    else
        text.none("max-flows", "by the machine's memory");
    if (entry.priority)
        text.number("priority", *entry.priority);
    else
        text.none("priority", "50 beside other XDP programs; the kernel's choice at tc");
    if (entry.chain)
        text.word("chain", kernel::chain_text(*entry.chain));
    else if (entry.hook == kernel::HookPoint::xdp)
        text.none("chain", "pass, beside other programs");
    text.flag("protect-host", entry.protect_host);
    text.key("protect", list_of(entry.protect));
    text.key("sets", list_of(entry.sets));
    text.flag("join", entry.join);
}

void write_access(Text& text, const ServerAccess& access) {
    text.line(server_access_of(access, "\n"));
}

void write_fleet(Text& text, const FleetConfiguration& fleet) {
    text.line("\n[fleet]");
    text.word("name", fleet.name);
    text.key("trusted-keys", list_of(fleet.trusted_keys));
    if (fleet.node.empty())
        text.none("node", "the host name");
    else
        text.word("node", fleet.node);
    text.key("labels", list_of(fleet.labels));
    text.word("report", duration_text(fleet.report));
    text.line("\n[fleet.etcd]");
    text.key("endpoints", list_of(fleet.etcd.endpoints));
    write_access(text, fleet.etcd.access);
    text.word("user", fleet.etcd.user);
    text.word("password-file", fleet.etcd.password_file);
    text.line("\n[fleet.store]");
    text.word("url", fleet.store.url);
    write_access(text, fleet.store.access);
    if (fleet.store.region.empty())
        text.none("region", "of S3; the store is a plain HTTP server");
    else
        text.word("region", fleet.store.region);
    text.word("credentials-file", fleet.store.credentials_file);
    if (fleet.store.rate == 0)
        text.none("rate", "no limit");
    else
        text.key("rate", whole_of(fleet.store.rate));
}

} // namespace

std::string configuration_text(const Configuration& configuration) {
    Text text;
    text.line("[service]");
    text.word("state-directory", configuration.state_directory);
    text.word("on-stop", configuration.on_stop == OnStop::keep ? "keep" : "unload");
    text.word("listen", configuration.listen);
    if (configuration.ban_group.empty())
        text.none("ban-group", "only root bans");
    else
        text.word("ban-group", configuration.ban_group);
    text.line(way_of(configuration.http, "\n"));
    text.key("geo", sources_of(configuration.geo));
    for (const InterfaceConfiguration& entry : configuration.interfaces) write_interface(text, entry);
    for (const SetConfiguration& set : configuration.sets) write_set(text, set);
    if (configuration.fleet) write_fleet(text, *configuration.fleet);
    return text.take();
}

std::string build_text(const SetConfiguration& set) {
    Text text;
    write_build_options(text, set.feed);
    // What a list without a kind leads to (build/default_kind.hpp), so that another rule builds it again.
    if (set.feed.build.kind.kind == automatic_kind) text.word("auto", "exact, ranges or a filter");
    text.flag("verify", set.verify);
    write_guards(text, set.guards);
    // What a source must no longer hand over does not stay in force as known.
    text.flag("image",
              std::ranges::all_of(set.sources, [](const SourceSpec& one) { return may_be_image(one); }));
    return text.take();
}

} // namespace sieve::service
