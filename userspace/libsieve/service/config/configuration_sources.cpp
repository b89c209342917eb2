// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_sources.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

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
constexpr SourcesKey sources_key{
    "sources",
    "a file, a folder/, a pattern, a URL, \"country:DE\", \"asn:AS3320\", \"bans\" or a table with url, "
    "command or crowdsec"};
constexpr SourcesKey geo_key{"geo", "a file, a folder/, a pattern, a URL, or a table with url or command"};

constexpr std::chrono::hours longest_fetch{24};
constexpr std::chrono::hours longest_poll{1};

constexpr std::array<std::string_view, 2> scope_words{"Ip", "Range"};

bool has_null(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

// One source that is a table.
class SourceTable {
  public:
    SourceTable(Section& parent, const SourcesKey& key, const toml::table& table,
                const std::filesystem::path& folder, const HttpAccess& defaults)
        : section_(parent.mistakes(), table, parent.key(key.name)), table_(table), folder_(folder),
          defaults_(defaults) {}

    // Nothing: it was wrong.
    std::optional<SourceSpec> read() {
        std::vector<std::string> given;
        for (const char* kind : {"url", "command", "crowdsec"})
            if (table_.contains(kind)) given.emplace_back(kind);
        if (given.size() != 1) {
            section_.mistake(given.empty()
                                 ? "no url, command or crowdsec: expected one of them"
                                 : fmt::format("{} and {}: expected only one of them", given[0], given[1]));
            return std::nullopt;
        }
        std::optional<SourceSpec> source;
        if (given[0] == "url") source = http();
        if (given[0] == "command") source = command();
        if (given[0] == "crowdsec") source = crowdsec();
        section_.finish();
        return source;
    }

  private:
    void read_limits(FetchLimits& limits) {
        section_.duration("timeout", longest_fetch, limits.timeout);
        section_.bytes("most-bytes", limits.most_bytes);
    }
    // `words`: the only ones that may be there; none: any.
    void read_texts(std::string_view name, std::string_view expected, std::vector<std::string>& into,
                    std::span<const std::string_view> words = {}) {
        const toml::node* array = section_.find(name);
        if (array == nullptr) return;
        into.clear();
        section_.texts(name, expected, [&](const toml::node& node, const std::string& text) {
            const bool fits = !text.empty() && !has_null(text) &&
                              (words.empty() || std::find(words.begin(), words.end(), text) != words.end());
            if (!fits) return section_.expected(node, name, expected);
            if (std::find(into.begin(), into.end(), text) != into.end())
                return section_.mistake(node, name, fmt::format("{} is named twice", in_quotes(text)));
            into.push_back(text);
        });
    }

    HttpSpec http() {
        HttpSpec http{.access = defaults_};
        read_url(section_, "url", http.url);
        read_http_access(section_, folder_, http.access);
        section_.flag("image", http.image);
        read_limits(http.limits);
        return http;
    }

    CommandSpec command() {
        constexpr std::string_view expected = R"(a program and its arguments: ["PROGRAM", "ARGUMENT", ...])";
        CommandSpec command;
        section_.texts("command", expected, [&](const toml::node& node, const std::string& text) {
            if (has_null(text) || (text.empty() && command.arguments.empty()))
                return section_.expected(node, "command", expected);
            command.arguments.push_back(text);
        });
        const toml::node& node = *table_.get("command");
        if (node.is_array() && node.as_array()->empty()) section_.expected(node, "command", expected);
        // A name without a slash is found in PATH.
        if (!command.arguments.empty() && command.arguments.front().find('/') != std::string::npos)
            command.arguments.front() = (folder_ / command.arguments.front()).lexically_normal().string();
        if (const auto user = section_.text("user", "the name of a user")) {
            if (has_null(*user)) section_.expected(*table_.get("user"), "user", "the name of a user");
            command.user = *user;
        }
        section_.flag("image", command.image);
        read_limits(command.limits);
        return command;
    }

    CrowdsecSpec crowdsec() {
        CrowdsecSpec crowdsec{.access = defaults_};
        read_url(section_, "crowdsec", crowdsec.url);
        read_http_access(section_, folder_, crowdsec.access);
        read_path(section_, folder_, "key-file", "a file with the bouncer's key", crowdsec.key_file);
        // An agent may also be known by its certificate. What is no text is a mistake already.
        const toml::node* key = table_.get("key-file");
        if (crowdsec.key_file.empty() && crowdsec.access.server.client_certificate.empty() &&
            (key == nullptr || key->is_string()))
            section_.mistake("no key-file: expected the file with the key that `cscli bouncers add` printed");
        read_texts("types", "a type of decisions, such as \"ban\"", crowdsec.types);
        read_texts("scopes", R"("Ip" or "Range")", crowdsec.scopes, scope_words);
        read_texts("origins", "an origin of decisions, such as \"crowdsec\"", crowdsec.origins);
        constexpr std::string_view part = "a part of a scenario's name, such as \"ssh\"";
        read_texts("scenarios-containing", part, crowdsec.scenarios_containing);
        read_texts("scenarios-not-containing", part, crowdsec.scenarios_not_containing);
        section_.duration("poll", longest_poll, crowdsec.poll);
        section_.flag("usage-metrics", crowdsec.usage_metrics);
        for (const char* name : {"types", "scopes"})
            if (const toml::array* array = table_[name].as_array(); array != nullptr && array->empty())
                section_.mistake(*array, name, "empty, expected at least one");
        return crowdsec;
    }
    Section section_;
    const toml::table& table_;
    const std::filesystem::path& folder_;
    const HttpAccess& defaults_;
};

// Nothing: it was wrong.
std::optional<SourceSpec> source_of_text(Section& section, const SourcesKey& key, const toml::node& node,
                                         const std::string& text, const std::filesystem::path& folder,
                                         const HttpAccess& defaults) {
    if (text.empty() || has_null(text)) {
        section.expected(node, key.name, key.what);
        return std::nullopt;
    }
    if (text == ban_source) return BanSpec{};
    if (text.find("://") != std::string::npos) {
        if (check_url(text)) return HttpSpec{.url = text, .access = defaults};
        expected_url(section, node, key.name);
        return std::nullopt;
    }
    const std::string path = (folder / text).lexically_normal().string();
    if (path.find_first_of("*?[") != std::string::npos) return GlobSpec{path};
    if (path.back() == '/') return FolderSpec{path};
    return FileSpec{path};
}

void add_source(Section& section, const SourcesKey& key, const toml::node& node,
                const std::filesystem::path& folder, const HttpAccess& defaults,
                std::vector<SourceSpec>& sources) {
    std::optional<SourceSpec> source;
    if (node.is_string())
        source = source_of_text(section, key, node, node.ref<std::string>(), folder, defaults);
    else if (const toml::table* table = node.as_table())
        source = SourceTable(section, key, *table, folder, defaults).read();
    else
        section.expected(node, key.name, key.what);
    if (!source) return;
    if (std::find(sources.begin(), sources.end(), *source) != sources.end())
        return section.mistake(node, key.name, fmt::format("{} is named twice", source_name(*source)));
    sources.push_back(std::move(*source));
}

bool is_stream(const SourceSpec& source) {
    return std::holds_alternative<CrowdsecSpec>(source) || std::holds_alternative<BanSpec>(source);
}

// Whether the element names a country or a network, rightly or not; `codes` takes its code.
bool take_code(Section& section, const toml::node& node, std::vector<std::string>& codes) {
    if (!node.is_string()) return false;
    const Result<std::optional<std::string>> code = geo_code_of_source(node.ref<std::string>());
    if (!code)
        section.mistake(node, sources_key.name, code.error().message);
    else if (!*code)
        return false;
    else if (std::find(codes.begin(), codes.end(), **code) != codes.end())
        section.mistake(node, sources_key.name, fmt::format("{} is named twice", **code));
    else
        codes.push_back(**code);
    return true;
}

} // namespace

void read_geo(Section& section, const std::filesystem::path& folder, const HttpAccess& defaults,
              std::vector<SourceSpec>& geo) {
    section.elements(geo_key.name, [&](const toml::node& node) {
        add_source(section, geo_key, node, folder, defaults, geo);
    });
    if (std::erase_if(geo, is_stream) > 0)
        section.expected(*section.find(geo_key.name), geo_key.name, geo_key.what);
}

void read_sources(Section& section, const std::filesystem::path& folder, const HttpAccess& defaults,
                  const std::vector<SourceSpec>& geo, SetConfiguration& set) {
    bool any = false;
    std::vector<std::string> codes;
    section.elements(sources_key.name, [&](const toml::node& node) {
        any = true;
        if (!take_code(section, node, codes))
            add_source(section, sources_key, node, folder, defaults, set.sources);
    });
    const toml::node* node = section.find(sources_key.name);
    if (node == nullptr)
        return section.mistake(
            "no sources: expected sources = [\"FILE\", \"FOLDER/\", \"FOLDER/*.txt\", \"URL\"]");
    if (!any)
        return section.mistake(*node, sources_key.name,
                               fmt::format("empty, expected at least one: {}", sources_key.what));
    if (!codes.empty()) {
        if (!set.sources.empty())
            return section.mistake(*node, sources_key.name,
                                   "a set of countries and networks has no other source; put the others into "
                                   "a set of their own");
        if (section.find("format") != nullptr)
            return section.mistake(*section.find("format"), "format",
                                   "a set of countries and networks takes no format: its data tell");
        if (geo.empty())
            return section.mistake(
                *node, sources_key.name,
                fmt::format("{} is to be found in data of countries and networks, and there "
                            "is none: expected geo = [\"FILE\", ...] in [service]",
                            codes.front()));
        set.sources = geo;
        set.feed.format = {ListSyntax::geo, std::move(codes)};
    }
    if (std::any_of(set.sources.begin(), set.sources.end(), is_stream) && set.sources.size() > 1)
        section.mistake(
            *node, sources_key.name,
            "a set that follows CrowdSec or bans has no other source; put the others into a set of "
            "their own");
}

} // namespace sieve::service
