// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// TOML as the printer of a configuration writes it: values, and the keys of one table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace sieve::service {

// A basic string of TOML.
[[nodiscard]] std::string quoted(const std::string& text);
[[nodiscard]] std::string list_of(const std::vector<std::string>& texts);
// TOML's integers have a sign; what is larger is a text.
[[nodiscard]] std::string whole_of(std::uint64_t value);

// The keys of one table.
class TomlText {
  public:
    void key(std::string_view name, const std::string& value);
    void word(std::string_view name, const std::string& value) { key(name, quoted(value)); }
    template <class T>
    void number(std::string_view name, T value) {
        key(name, fmt::format("{}", value));
    }
    void flag(std::string_view name, bool value) { key(name, value ? "true" : "false"); }
    // A key that has no default that could be written.
    void none(std::string_view name, std::string_view meaning);

    // A line for each key; a comment for each that has no value.
    [[nodiscard]] std::string lines() const;
    // An inline table of the keys with a value.
    [[nodiscard]] std::string inline_table() const;

  private:
    struct Key {
        std::string line;
        bool has_value;
    };
    std::vector<Key> keys_;
};

} // namespace sieve::service
