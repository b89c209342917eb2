// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_sources.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libsieve/feeds/text/geo_code.hpp"
#include "libsieve/service/config/configuration_access.hpp"
#include "libsieve/service/download/url.hpp"

namespace sieve::service {

namespace {

// A key whose value is a list of sources.
struct SourcesKey {
    std::string_view name;
    std::string_view what; // an element is
};
constexpr SourcesKey sources_words{
    "sources",
    "a file, a folder/, a pattern, a URL, \"country:DE\", \"asn:AS3320\", \"bans\" or a table with url, "
    "command or crowdsec"};
constexpr SourcesKey geo_words{"geo", "a file, a folder/, a pattern, a URL, or a table with url or command"};

constexpr std::chrono::hours longest_fetch{24};
constexpr std::chrono::hours longest_poll{1};

constexpr std::array<std::string_view, 2> scope_words{"Ip", "Range"};

bool has_null(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

// Texts of which none is empty or named twice.
void read_texts(Section& section, std::string_view name, std::string_view expected,
                std::vector<std::string>& into, std::span<const std::string_view> words) {
    if (section.find(name) == nullptr) return;
    into.clear();
    section.texts(name, expected, [&](const toml::node& node, const std::string& text) {
        const bool fits = !text.empty() && !has_null(text) &&
                          (words.empty() || std::find(words.begin(), words.end(), text) != words.end());
        if (!fits) return section.expected(node, name, expected);
        if (std::find(into.begin(), into.end(), text) != into.end())
            return section.mistake(node, name, fmt::format("{} is named twice", in_quotes(text)));
        into.push_back(text);
    });
}

// `words`: the only ones that may be there; none: any.
ConfigurationKey<CrowdsecSpec> texts_key(const char* name, const char* form, const char* help,
                                         const char* expected, std::vector<std::string> CrowdsecSpec::*member,
                                         std::span<const std::string_view> words = {}) {
    return {name, form, help,
            [=](Section& section, const KeyContext&, CrowdsecSpec& into) {
                read_texts(section, name, expected, into.*member, words);
            },
            [=](TomlText& text, const CrowdsecSpec& table) { text.key(name, list_of(table.*member)); }};
}

const ConfigurationKeys<FetchLimits>& limit_keys() {
    static const ConfigurationKeys<FetchLimits> keys = {
        time_key("timeout", "how long a download or a command may take", longest_fetch,
                 &FetchLimits::timeout),
        bytes_key("most-bytes", "how large the answer may be", &FetchLimits::most_bytes),
    };
    return keys;
}

void read_command(Section& section, const KeyContext& context, CommandSpec& into) {
    constexpr std::string_view expected = R"(a program and its arguments: ["PROGRAM", "ARGUMENT", ...])";
    section.texts("command", expected, [&](const toml::node& node, const std::string& text) {
        if (has_null(text) || (text.empty() && into.arguments.empty()))
            return section.expected(node, "command", expected);
        into.arguments.push_back(text);
    });
    const toml::node& node = *section.find("command");
    if (node.is_array() && node.as_array()->empty()) section.expected(node, "command", expected);
    // A name without a slash is found in PATH.
    if (!into.arguments.empty() && into.arguments.front().find('/') != std::string::npos)
        into.arguments.front() = (context.folder / into.arguments.front()).lexically_normal().string();
}

void read_user(Section& section, const KeyContext&, CommandSpec& into) {
    constexpr std::string_view expected = "the name of a user";
    const auto user = section.text("user", expected);
    if (!user) return;
    if (has_null(*user)) section.expected(*section.find("user"), "user", expected);
    into.user = *user;
}

void check_crowdsec(Section& section, const CrowdsecSpec& crowdsec) {
    check_access(section, crowdsec.access);
    // An agent may also be known by its certificate. What is no text is a mistake already.
    const toml::node* key = section.find("key-file");
    if (crowdsec.key_file.empty() && crowdsec.access.server.client_certificate.empty() &&
        (key == nullptr || key->is_string()))
        section.mistake("no key-file: expected the file with the key that `cscli bouncers add` printed");
    for (const char* name : {"types", "scopes"})
        if (const toml::node* node = section.find(name))
            if (const toml::array* array = node->as_array(); array != nullptr && array->empty())
                section.mistake(*array, name, "empty, expected at least one");
}

// A source that is a table. Nothing: it was wrong.
std::optional<SourceSpec> source_of_table(Section& parent, const SourcesKey& key, const toml::table& table,
                                          const KeyContext& context) {
    Section section(parent.mistakes(), table, parent.key(key.name));
    std::vector<std::string> given;
    for (const char* kind : {"url", "command", "crowdsec"})
        if (table.contains(kind)) given.emplace_back(kind);
    if (given.size() != 1) {
        section.mistake(given.empty()
                            ? "no url, command or crowdsec: expected one of them"
                            : fmt::format("{} and {}: expected only one of them", given[0], given[1]));
        return std::nullopt;
    }
    std::optional<SourceSpec> source;
    if (given[0] == "url") {
        HttpSpec http{.access = context.http};
        read_keys(http_keys(), section, context, http);
        check_access(section, http.access);
        source = std::move(http);
    }
    if (given[0] == "command") {
        CommandSpec command;
        read_keys(command_keys(), section, context, command);
        source = std::move(command);
    }
    if (given[0] == "crowdsec") {
        CrowdsecSpec crowdsec{.access = context.http};
        read_keys(crowdsec_keys(), section, context, crowdsec);
        check_crowdsec(section, crowdsec);
        source = std::move(crowdsec);
    }
    section.finish();
    return source;
}

// Nothing: it was wrong.
std::optional<SourceSpec> source_of_text(Section& section, const SourcesKey& key, const toml::node& node,
                                         const std::string& text, const KeyContext& context) {
    if (text.empty() || has_null(text)) {
        section.expected(node, key.name, key.what);
        return std::nullopt;
    }
    if (text == ban_source) return BanSpec{};
    if (text.find("://") != std::string::npos) {
        if (check_url(text)) return HttpSpec{.url = text, .access = context.http};
        expected_url(section, node, key.name);
        return std::nullopt;
    }
    const std::string path = (context.folder / text).lexically_normal().string();
    if (path.find_first_of("*?[") != std::string::npos) return GlobSpec{path};
    if (path.back() == '/') return FolderSpec{path};
    return FileSpec{path};
}

void add_source(Section& section, const SourcesKey& key, const toml::node& node, const KeyContext& context,
                std::vector<SourceSpec>& sources) {
    std::optional<SourceSpec> source;
    if (node.is_string())
        source = source_of_text(section, key, node, node.ref<std::string>(), context);
    else if (const toml::table* table = node.as_table())
        source = source_of_table(section, key, *table, context);
    else
        section.expected(node, key.name, key.what);
    if (!source) return;
    if (std::find(sources.begin(), sources.end(), *source) != sources.end())
        return section.mistake(node, key.name, fmt::format("{} is named twice", source_name(*source)));
    sources.push_back(std::move(*source));
}

// Whether the element names a country or a network, rightly or not; `codes` takes its code.
bool take_code(Section& section, const toml::node& node, std::vector<std::string>& codes) {
    if (!node.is_string()) return false;
    const Result<std::optional<std::string>> code = geo_code_of_source(node.ref<std::string>());
    if (!code)
        section.mistake(node, sources_words.name, code.error().message);
    else if (!*code)
        return false;
    else if (std::find(codes.begin(), codes.end(), **code) != codes.end())
        section.mistake(node, sources_words.name, fmt::format("{} is named twice", **code));
    else
        codes.push_back(**code);
    return true;
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
std::string text_of(const HttpSpec& http) {
    return text_of_keys(http_keys(), http).inline_table();
}
std::string text_of(const CommandSpec& command) {
    return text_of_keys(command_keys(), command).inline_table();
}
std::string text_of(const CrowdsecSpec& crowdsec) {
    return text_of_keys(crowdsec_keys(), crowdsec).inline_table();
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

void read_geo(Section& section, const KeyContext& context, Configuration& into) {
    section.elements(geo_words.name, [&](const toml::node& node) {
        add_source(section, geo_words, node, context, into.geo);
    });
    if (std::erase_if(into.geo, is_stream) > 0)
        section.expected(*section.find(geo_words.name), geo_words.name, geo_words.what);
}

void read_sources(Section& section, const KeyContext& context, SetConfiguration& set) {
    bool any = false;
    std::vector<std::string> codes;
    section.elements(sources_words.name, [&](const toml::node& node) {
        any = true;
        if (!take_code(section, node, codes)) add_source(section, sources_words, node, context, set.sources);
    });
    const toml::node* node = section.find(sources_words.name);
    if (node == nullptr)
        return section.mistake(
            "no sources: expected sources = [\"FILE\", \"FOLDER/\", \"FOLDER/*.txt\", \"URL\"]");
    if (!any)
        return section.mistake(*node, sources_words.name,
                               fmt::format("empty, expected at least one: {}", sources_words.what));
    if (!codes.empty()) {
        if (!set.sources.empty())
            return section.mistake(*node, sources_words.name,
                                   "a set of countries and networks has no other source; put the others into "
                                   "a set of their own");
        if (section.find("format") != nullptr)
            return section.mistake(*section.find("format"), "format",
                                   "a set of countries and networks takes no format: its data tell");
        if (context.geo.empty())
            return section.mistake(
                *node, sources_words.name,
                fmt::format("{} is to be found in data of countries and networks, and there "
                            "is none: expected geo = [\"FILE\", ...] in [service]",
                            codes.front()));
        set.sources = context.geo;
        set.feed.format = {ListSyntax::geo, std::move(codes)};
    }
    const auto is_api = [](const SourceSpec& source) { return std::holds_alternative<CrowdsecSpec>(source); };
    if (std::ranges::count_if(set.sources, is_api) > 1)
        section.mistake(*node, sources_words.name,
                        "a set follows one CrowdSec; put the other one into a set of its own");
}

} // namespace

const ConfigurationKeys<HttpSpec>& http_keys() {
    static const ConfigurationKeys<HttpSpec> keys = joined<HttpSpec>({
        {url_key("url", "the URL of a list; a redirect is followed to https only", &HttpSpec::url)},
        keys_of_part(&HttpSpec::access, http_access_keys()),
        {flag_key("image", "whether the server may hand over an image in place of a list", &HttpSpec::image)},
        keys_of_part(&HttpSpec::limits, limit_keys()),
    });
    return keys;
}

const ConfigurationKeys<CommandSpec>& command_keys() {
    static const ConfigurationKeys<CommandSpec> keys = joined<CommandSpec>({
        {{"command", "[program, argument, ...]",
          "a program and its arguments, without a shell; its standard output is the list", read_command,
          [](TomlText& text, const CommandSpec& command) {
              text.key("command", list_of(command.arguments));
          }},
         {"user", "name", "the user that the command runs as; that of downloads and builds if empty",
          read_user, [](TomlText& text, const CommandSpec& command) { text.word("user", command.user); }},
         flag_key("image", "whether the command may hand over an image in place of a list",
                  &CommandSpec::image)},
        keys_of_part(&CommandSpec::limits, limit_keys()),
    });
    return keys;
}

const ConfigurationKeys<CrowdsecSpec>& crowdsec_keys() {
    constexpr const char* part = "a part of a scenario's name, such as \"ssh\"";
    static const ConfigurationKeys<CrowdsecSpec> keys = joined<CrowdsecSpec>({
        {url_key("crowdsec", "the CrowdSec local API whose decisions the set follows", &CrowdsecSpec::url),
         path_key("key-file",
                  "a file with the key of the bouncer in one line; not needed with a certificate that the "
                  "API knows",
                  "a file with the bouncer's key", &CrowdsecSpec::key_file),
         texts_key("types", "[type, ...]", "types of decisions", "a type of decisions, such as \"ban\"",
                   &CrowdsecSpec::types),
         texts_key("scopes", "[scope, ...]",
                   "`Ip` for decisions about addresses, `Range` for those about prefixes",
                   R"("Ip" or "Range")", &CrowdsecSpec::scopes, scope_words),
         texts_key("origins", "[origin, ...]",
                   "origins of decisions, such as `crowdsec`, `cscli` or `lists`; all if empty",
                   "an origin of decisions, such as \"crowdsec\"", &CrowdsecSpec::origins),
         texts_key("scenarios-containing", "[text, ...]",
                   "decisions of scenarios whose name contains one of these; all if empty", part,
                   &CrowdsecSpec::scenarios_containing),
         texts_key("scenarios-not-containing", "[text, ...]",
                   "decisions of scenarios whose name contains none of these", part,
                   &CrowdsecSpec::scenarios_not_containing),
         time_key("poll", "the time between two questions", longest_poll, &CrowdsecSpec::poll),
         flag_key("usage-metrics",
                  "whether the API is told how many packets were seen and dropped, and how many decisions "
                  "are in force",
                  &CrowdsecSpec::usage_metrics)},
        keys_of_part(&CrowdsecSpec::access, http_access_keys()),
    });
    return keys;
}

ConfigurationKey<Configuration> geo_key() {
    return {std::string(geo_words.name), "[source, ...]",
            "the data of countries and networks from which `country:DE` and `asn:AS3320` choose", read_geo,
            [](TomlText& text, const Configuration& configuration) {
                text.key(geo_words.name, sources_of(configuration.geo));
            }};
}

ConfigurationKey<SetConfiguration> sources_key() {
    return {std::string(sources_words.name), "[source, ...]",
            "where the list comes from: files, folders, patterns, URLs, `bans`, countries, networks, or "
            "tables; required",
            read_sources, [](TomlText& text, const SetConfiguration& set) {
                text.key(sources_words.name, sources_of(set.sources));
            }};
}

} // namespace sieve::service
