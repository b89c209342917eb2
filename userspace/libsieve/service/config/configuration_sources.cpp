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

#include "libsieve/service/config/configuration_access.hpp"
#include "libsieve/service/download/url.hpp"

namespace sieve::service {

namespace {

constexpr std::string_view sources_key = "sources";
constexpr std::string_view what =
    "a file, a folder/, a pattern, a URL, \"bans\" or a table with url, command or crowdsec";

constexpr std::chrono::hours longest_fetch{24};
constexpr std::chrono::hours longest_poll{1};

constexpr std::array<std::string_view, 2> scope_words{"Ip", "Range"};

bool has_null(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

// One source that is a table.
class SourceTable {
  public:
    SourceTable(Section& set, const toml::table& table, const std::filesystem::path& folder,
                const HttpAccess& defaults)
        : section_(set.mistakes(), table, set.key(sources_key)), table_(table), folder_(folder),
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
        // An agent may also be known by its certificate.
        if (crowdsec.key_file.empty() && crowdsec.access.server.client_certificate.empty())
            section_.mistake("no key-file: expected the file with the key that `cscli bouncers add` printed");
        read_texts("types", "a type of decisions, such as \"ban\"", crowdsec.types);
        read_texts("scopes", R"("Ip" or "Range")", crowdsec.scopes, scope_words);
        read_texts("origins", "an origin of decisions, such as \"crowdsec\"", crowdsec.origins);
        section_.duration("poll", longest_poll, crowdsec.poll);
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
std::optional<SourceSpec> source_of_text(Section& section, const toml::node& node, const std::string& text,
                                         const std::filesystem::path& folder, const HttpAccess& defaults) {
    if (text.empty() || has_null(text)) {
        section.expected(node, sources_key, what);
        return std::nullopt;
    }
    if (text == ban_source) return BanSpec{};
    if (text.find("://") != std::string::npos) {
        if (check_url(text)) return HttpSpec{.url = text, .access = defaults};
        expected_url(section, node, sources_key);
        return std::nullopt;
    }
    const std::string path = (folder / text).lexically_normal().string();
    if (path.find_first_of("*?[") != std::string::npos) return GlobSpec{path};
    if (path.back() == '/') return FolderSpec{path};
    return FileSpec{path};
}

} // namespace

void read_sources(Section& section, const std::filesystem::path& folder, const HttpAccess& defaults,
                  SetConfiguration& set) {
    bool any = false;
    section.elements(sources_key, [&](const toml::node& node) {
        any = true;
        std::optional<SourceSpec> source;
        if (node.is_string())
            source = source_of_text(section, node, node.ref<std::string>(), folder, defaults);
        else if (const toml::table* table = node.as_table())
            source = SourceTable(section, *table, folder, defaults).read();
        else
            section.expected(node, sources_key, what);
        if (!source) return;
        if (std::find(set.sources.begin(), set.sources.end(), *source) != set.sources.end())
            return section.mistake(node, sources_key, fmt::format("{} is named twice", source_name(*source)));
        set.sources.push_back(std::move(*source));
    });
    const toml::node* node = section.find(sources_key);
    if (node == nullptr)
        return section.mistake(
            "no sources: expected sources = [\"FILE\", \"FOLDER/\", \"FOLDER/*.txt\", \"URL\"]");
    if (!any)
        return section.mistake(*node, sources_key, fmt::format("empty, expected at least one: {}", what));
    const bool stream = std::any_of(set.sources.begin(), set.sources.end(), [](const SourceSpec& source) {
        return std::holds_alternative<CrowdsecSpec>(source) || std::holds_alternative<BanSpec>(source);
    });
    if (stream && set.sources.size() > 1)
        section.mistake(
            *node, sources_key,
            "a set that follows CrowdSec or bans has no other source; put the others into a set of "
            "their own");
}

} // namespace sieve::service
