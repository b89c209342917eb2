// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One table of the configuration, key by key: what reads it and notes each mistake with its place.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/config/configuration_toml.hpp"

namespace sieve::service {

// Short text of a file, for a message.
[[nodiscard]] std::string in_quotes(std::string_view text);

// What stands there, for a message: a text in quotes, a number, "an array".
[[nodiscard]] std::string found(const toml::node& node);

// "a, b or c"
[[nodiscard]] std::string alternatives(std::span<const std::string> words);

// All that is wrong with a configuration.
class Mistakes {
  public:
    // The path of the configuration's first file.
    explicit Mistakes(std::string first) : first_(std::move(first)) {}

    void add(const toml::source_region& where, std::string key, std::string message);
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    // In the order of the files.
    [[nodiscard]] std::vector<Mistake> take();

  private:
    std::string first_;
    std::vector<Mistake> all_;
};

// The keys of one table. Whoever reads asks for each key that there can be; finish() then knows which ones
// nobody asked for.
class Section {
  public:
    // `path` is the table's key: "set.bad".
    Section(Mistakes& mistakes, const toml::table& table, std::string path)
        : mistakes_(mistakes), table_(table), path_(std::move(path)) {}

    // Null: the table has no such key.
    [[nodiscard]] const toml::node* find(std::string_view name);
    [[nodiscard]] std::string key(std::string_view name) const;
    [[nodiscard]] Mistakes& mistakes() { return mistakes_; }

    void mistake(const toml::node& node, std::string_view name, std::string message);
    // The section as a whole.
    void mistake(std::string message);
    // `what` was expected, something else was found.
    void expected(const toml::node& node, std::string_view name, std::string_view what);

    // A text; `what` names it. Nothing if there is none.
    [[nodiscard]] std::optional<std::string> text(std::string_view name, std::string_view what);
    void flag(std::string_view name, bool& into);
    // A number from `least` to `most`; `what` names it: "a share".
    void number(std::string_view name, double least, double most, std::string_view what, double& into);
    // A span of time of at least a second and at most `most`.
    void duration(std::string_view name, std::chrono::seconds most, std::chrono::seconds& into);
    // A number of bytes, at least one.
    void bytes(std::string_view name, std::uint64_t& into);
    // The elements of an array. A single value is taken as an array of one.
    void elements(std::string_view name, const std::function<void(const toml::node& node)>& take);
    // The texts of an array; `what` names one of them. A single text is taken as an array of one.
    void texts(std::string_view name, std::string_view what,
               const std::function<void(const toml::node& node, const std::string& text)>& take);
    // Addresses, prefixes and ranges, as they are written.
    void members(std::string_view name, std::vector<std::string>& into);
    [[nodiscard]] const toml::table* table(std::string_view name);

    // One of these words.
    template <class T>
    void choice(std::string_view name, std::span<const std::pair<std::string_view, T>> words, T& into) {
        const toml::node* node = find(name);
        if (node == nullptr) return;
        std::vector<std::string> known;
        for (const auto& [word, value] : words) {
            if (node->is_string() && node->ref<std::string>() == word) {
                into = value;
                return;
            }
            known.push_back('"' + std::string(word) + '"');
        }
        expected(*node, name, alternatives(known));
    }

    // Keys that nobody asked for.
    void finish();

  private:
    Mistakes& mistakes_;
    const toml::table& table_;
    std::string path_;
    std::vector<std::string> known_;
};

} // namespace sieve::service
