// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The manual page says of each key what the configuration does.
#include "libsieve/service/config/configuration_tables.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/util/number.hpp"

namespace sieve::service {
namespace {

/// What the page says of a key.
struct Described {
    std::string form;     // empty where the page only names the key
    std::string standard; // what it calls the value "if not given"; empty if that is no value
};
using Keys = std::map<std::string, Described>;

std::string page(const char* path) {
    std::ifstream stream(path);
    EXPECT_TRUE(stream) << path;
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find(separator, begin)) != std::string::npos;
         begin = end + separator.size())
        parts.push_back(text.substr(begin, end - begin));
    parts.push_back(text.substr(begin));
    return parts;
}

/// `Cm \(dqkeep\(dq | \(dqunload\(dq` as `"keep" | "unload"`, `Bq Ar name , ...` as `[name, ...]`.
std::string plain(const std::string& mdoc) {
    std::string text = std::regex_replace(mdoc, std::regex("\\\\\\(dq"), "\"");
    text = std::regex_replace(text, std::regex("\\b(Cm|Ar) "), "");
    text = std::regex_replace(text, std::regex(" ,"), ",");
    return text.starts_with("Bq ") ? "[" + text.substr(3) + "]" : text;
}

/// The value in `.Cm keep` or `0.5` before "if not given".
std::string standard_of(const std::string& body) {
    std::smatch found;
    if (std::regex_search(body, found, std::regex("\\n\\.(?:Cm|Qq|Pa) (\\S+)\\nif not given")))
        return found[1];
    if (std::regex_search(body, found, std::regex("\\n([0-9.]+) if not given"))) return found[1];
    return {};
}

/// The entries `.It Cm NAME No = FORM` and `.It Cm NAME , NAME` of a list.
Keys keys_of(const std::string& list) {
    Keys keys;
    const std::vector<std::string> entries = split(list, "\n.It Cm ");
    for (std::size_t i = 1; i < entries.size(); i++) {
        const std::string head = entries[i].substr(0, entries[i].find('\n'));
        const bool with_forms = head.find(" No = ") != std::string::npos;
        const std::vector<std::string> names = split(head, with_forms ? " , Cm " : " , ");
        for (const std::string& name : names) {
            const std::vector<std::string> parts = split(name, " No = ");
            keys[parts[0]] = {parts.size() > 1 ? plain(parts[1]) : "",
                              names.size() == 1 ? standard_of(entries[i]) : ""};
        }
    }
    return keys;
}

/// The keys of each table that the page has.
std::map<std::string, Keys> tables() {
    std::map<std::string, Keys> all;
    const std::vector<std::string> sections = split(page("docs/xdp-sieve.toml.5"), "\n.Ss ");
    for (std::size_t i = 1; i < sections.size(); i++) {
        const std::string name = sections[i].substr(0, sections[i].find('\n'));
        const std::string text = sections[i].substr(0, sections[i].find("\n.Sh "));
        if (name != "Sources as tables") {
            all[name] = keys_of(text);
            continue;
        }
        // A source has one list for each key that it may begin with.
        for (const std::string& list : split(text, "\nA table with\n.Cm "))
            if (const std::string key = list.substr(0, list.find('\n')); key != name)
                all[key] = keys_of(list);
    }
    return all;
}

/// The value in `NAME = VALUE`, without quotation marks; empty where there is only a comment.
std::string value_of(const std::string& line) {
    std::smatch found;
    if (!std::regex_match(line, found, std::regex("[a-z0-9-]+ = \"?([^\"]*)\"?\n"))) return {};
    return found[1];
}

TEST(ConfigurationTables, TheManualPageHasEachKeyInItsForm) {
    std::map<std::string, Keys> described = tables();
    for (const TableFacts& table : configuration_tables()) {
        Keys& keys = described[table.name];
        for (const KeyFacts& key : table.keys) {
            ASSERT_TRUE(keys.contains(key.name)) << table.name << " " << key.name << ": not in the page";
            // That of a build's option is what its help says.
            if (const std::string& form = keys[key.name].form; !form.empty() && !key.form.empty()) {
                EXPECT_EQ(form, key.form) << table.name << " " << key.name;
            }
            keys.erase(key.name);
        }
        for (const auto& [name, key] : keys) ADD_FAILURE() << table.name << " " << name << ": no such key";
        described.erase(table.name);
    }
    for (const auto& [name, keys] : described) ADD_FAILURE() << name << ": no such table";
}

TEST(ConfigurationTables, TheManualPageHasTheDefaults) {
    std::map<std::string, Keys> described = tables();
    std::size_t compared = 0;
    for (const TableFacts& table : configuration_tables())
        for (const KeyFacts& key : table.keys) {
            const std::string& said = described[table.name][key.name].standard;
            const std::string standard = value_of(key.standard);
            if (said.empty() || standard.empty()) continue;
            compared++;
            if (key.form == "bytes")
                EXPECT_EQ(parse_bytes(said).value(), parse_bytes(standard).value())
                    << table.name << " " << key.name;
            else
                EXPECT_EQ(said, standard) << table.name << " " << key.name;
        }
    EXPECT_GT(compared, 20U);
}

/// How a server is asked: the keys that tables of lists and of CrowdSec share.
TEST(ConfigurationTables, ThePageOfTheServiceHasTheKeysOfServers) {
    std::map<std::string, std::set<std::string>> names;
    for (const TableFacts& table : configuration_tables())
        for (const KeyFacts& key : table.keys) names[table.name].insert(key.name);
    std::set<std::string> shared;
    std::ranges::set_intersection(names["url"], names["crowdsec"], std::inserter(shared, shared.end()));

    std::set<std::string> described;
    std::string rows = page("docs/service.md");
    rows = rows.substr(rows.find("\n| `username`"));
    rows = rows.substr(0, rows.find("\n\n"));
    for (const std::string& row : split(rows, "\n| ")) {
        const std::string cell = row.substr(0, row.find(" |"));
        const std::regex name("`([a-z-]+)`");
        for (std::sregex_iterator at(cell.begin(), cell.end(), name), end; at != end; ++at)
            described.insert((*at)[1]);
    }
    EXPECT_EQ(described, shared);
}

} // namespace
} // namespace sieve::service
