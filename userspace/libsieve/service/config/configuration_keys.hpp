// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One descriptor a key. Each table of the configuration has a list of its keys; what reads and prints the
// table, docs/configuration.md, the checks of its manual page and the words of its fuzz target come from
// this list.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libsieve/service/config/configuration_section.hpp"
#include "libsieve/service/config/toml_text.hpp"
#include "libsieve/service/config/values/duration.hpp"
#include "libsieve/service/config/values/source_spec.hpp"

namespace sieve::service {

using SetNames = std::vector<std::string>;

// What a key may depend on besides its table.
struct KeyContext {
    const std::filesystem::path& folder; // where its paths start
    const HttpAccess& http;              // of [service]
    const std::vector<SourceSpec>& geo;  // likewise
    const SetNames& sets;                // of all files
};

// A key of a table that becomes a `Table`.
template <class Table>
struct ConfigurationKey {
    std::string name;
    // What follows "NAME = " in the manual page: "time", "true | false", R"("keep" | "unload")".
    std::string form;
    std::string help; // one line, for docs/configuration.md
    // Reads the key if the section has it. The keys before it in the list are read already.
    std::function<void(Section& section, const KeyContext& context, Table& into)> read;
    // Prints the key, or nothing if another key says the same.
    std::function<void(TomlText& text, const Table& table)> write;
};

template <class Table>
using ConfigurationKeys = std::vector<ConfigurationKey<Table>>;

template <class Table>
void read_keys(const ConfigurationKeys<Table>& keys, Section& section, const KeyContext& context,
               Table& into) {
    for (const ConfigurationKey<Table>& key : keys) key.read(section, context, into);
}

template <class Table>
void write_keys(const ConfigurationKeys<Table>& keys, TomlText& text, const Table& table) {
    for (const ConfigurationKey<Table>& key : keys) key.write(text, table);
}

template <class Table>
[[nodiscard]] TomlText text_of_keys(const ConfigurationKeys<Table>& keys, const Table& table) {
    TomlText text;
    write_keys(keys, text, table);
    return text;
}

// The keys of several lists, in this order.
template <class Table>
[[nodiscard]] ConfigurationKeys<Table> joined(std::initializer_list<ConfigurationKeys<Table>> lists) {
    ConfigurationKeys<Table> all;
    for (const ConfigurationKeys<Table>& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
}

// The keys of a part of the table.
template <class Table, class Part>
[[nodiscard]] ConfigurationKeys<Table> keys_of_part(Part Table::*part, const ConfigurationKeys<Part>& keys) {
    ConfigurationKeys<Table> all;
    for (const ConfigurationKey<Part>& key : keys)
        all.push_back({key.name, key.form, key.help,
                       [key, part](Section& section, const KeyContext& context, Table& into) {
                           key.read(section, context, into.*part);
                       },
                       [key, part](TomlText& text, const Table& table) { key.write(text, table.*part); }});
    return all;
}

// --- the usual shapes. `what` names what is expected, in messages. ---

template <class Table>
[[nodiscard]] ConfigurationKey<Table> flag_key(const char* name, const char* help, bool Table::*member) {
    return {name, "true | false", help,
            [=](Section& section, const KeyContext&, Table& into) { section.flag(name, into.*member); },
            [=](TomlText& text, const Table& table) { text.flag(name, table.*member); }};
}

template <class Table>
[[nodiscard]] ConfigurationKey<Table> number_key(const char* name, const char* form, const char* help,
                                                 double least, double most, const char* what,
                                                 double Table::*member) {
    return {name, form, help,
            [=](Section& section, const KeyContext&, Table& into) {
                section.number(name, least, most, what, into.*member);
            },
            [=](TomlText& text, const Table& table) { text.number(name, table.*member); }};
}

template <class Table>
[[nodiscard]] ConfigurationKey<Table> time_key(const char* name, const char* help, std::chrono::seconds most,
                                               std::chrono::seconds Table::*member) {
    return {
        name, "time", help,
        [=](Section& section, const KeyContext&, Table& into) { section.duration(name, most, into.*member); },
        [=](TomlText& text, const Table& table) { text.word(name, duration_text(table.*member)); }};
}

template <class Table>
[[nodiscard]] ConfigurationKey<Table> bytes_key(const char* name, const char* help,
                                                std::uint64_t Table::*member) {
    return {name, "bytes", help,
            [=](Section& section, const KeyContext&, Table& into) { section.bytes(name, into.*member); },
            [=](TomlText& text, const Table& table) { text.key(name, whole_of(table.*member)); }};
}

template <class T>
using Words = std::vector<std::pair<std::string_view, T>>;

// R"("keep" | "unload")".
template <class T>
[[nodiscard]] std::string form_of(const Words<T>& words) {
    std::string form;
    for (const auto& [word, value] : words) form += (form.empty() ? "\"" : " | \"") + std::string(word) + '"';
    return form;
}

template <class T>
[[nodiscard]] std::string word_of(const Words<T>& words, T value) {
    for (const auto& [word, one] : words)
        if (one == value) return std::string(word);
    return {};
}

template <class Table, class T>
[[nodiscard]] ConfigurationKey<Table> choice_key(const char* name, const char* help, Words<T> words,
                                                 T Table::*member) {
    return {name, form_of(words), help,
            [=](Section& section, const KeyContext&, Table& into) {
                section.choice<T>(name, words, into.*member);
            },
            [=](TomlText& text, const Table& table) { text.word(name, word_of(words, table.*member)); }};
}

// Any text.
template <class Table>
[[nodiscard]] ConfigurationKey<Table> text_key(const char* name, const char* form, const char* help,
                                               const char* what, std::string Table::*member) {
    return {name, form, help,
            [=](Section& section, const KeyContext&, Table& into) {
                if (auto text = section.text(name, what)) into.*member = std::move(*text);
            },
            [=](TomlText& text, const Table& table) { text.word(name, table.*member); }};
}

} // namespace sieve::service
