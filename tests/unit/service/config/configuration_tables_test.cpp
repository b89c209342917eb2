// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The manual page and docs/configuration.md say of each key what the configuration does.
#include "libsieve/service/config/configuration_tables.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/util/text/number.hpp"

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
            if (const std::string& form = keys[key.name].form; !form.empty()) {
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

/// A cell of a table in Markdown.
std::string cell(const std::string& text, bool as_code = false) {
    if (text.empty()) return "";
    const std::string escaped = std::regex_replace(text, std::regex("\\|"), "\\|");
    return as_code ? "`" + escaped + "`" : escaped;
}

/// What a key is where the file does not say: a value, or what its absence means.
std::string standard_cell(const std::string& line) {
    std::smatch found;
    if (std::regex_match(line, found, std::regex("# [a-z0-9-]+: (.*)\n"))) return cell(found[1]);
    if (std::regex_match(line, found, std::regex("[a-z0-9-]+ = (.*)\n")))
        return found[1] == "\"\"" || found[1] == "[]" ? "" : cell(found[1], true);
    return "";
}

/// docs/configuration.md from the first heading on.
std::string tables_of_keys() {
    std::string text;
    for (const TableFacts& table : configuration_tables()) {
        text += table.name.starts_with("[") ? "## " + table.name + "\n\n"
                                            : "## A source with `" + table.name + "`\n\n";
        text += "| key | value | if not given | what it says |\n| --- | --- | --- | --- |\n";
        for (const KeyFacts& key : table.keys)
            text += "| " + cell(key.name, true) + " | " + cell(key.form, true) + " | " +
                    standard_cell(key.standard) + " | " + cell(key.help) + " |\n";
        text += "\n";
    }
    text.pop_back();
    return text;
}

/// The tables in docs/configuration.md are what the list of keys says. SIEVE_WRITE_DOCS=1 writes them.
TEST(ConfigurationTables, AreDocumented) {
    const char* const path = "docs/configuration.md";
    const std::string before = page(path), head = before.substr(0, before.find("## "));
    if (std::getenv("SIEVE_WRITE_DOCS") != nullptr) std::ofstream(path) << head << tables_of_keys();
    EXPECT_TRUE(page(path) == head + tables_of_keys())
        << path << " differs; SIEVE_WRITE_DOCS=1 build/unit-tests --gtest_filter=ConfigurationTables.*";
}

TEST(ConfigurationTables, EachKeySaysInOneLineWhatItIs) {
    for (const TableFacts& table : configuration_tables())
        for (const KeyFacts& key : table.keys) {
            EXPECT_FALSE(key.help.empty()) << table.name << " " << key.name;
            EXPECT_EQ(key.help.find('\n'), std::string::npos) << table.name << " " << key.name;
        }
}

} // namespace
} // namespace sieve::service
