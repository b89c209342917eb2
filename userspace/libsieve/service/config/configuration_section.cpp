// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_section.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/service/config/values/duration.hpp"
#include "libsieve/util/text/closest_word.hpp"
#include "libsieve/util/text/number.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

std::string in_quotes(std::string_view text) {
    return '"' + printable(text, 64) + '"';
}

std::string found(const toml::node& node) {
    switch (node.type()) {
    case toml::node_type::string:
        return in_quotes(node.ref<std::string>());
    case toml::node_type::integer:
        return fmt::format("{}", node.ref<std::int64_t>());
    case toml::node_type::floating_point:
        return fmt::format("{}", node.ref<double>());
    case toml::node_type::boolean:
        return node.ref<bool>() ? "true" : "false";
    case toml::node_type::array:
        return "an array";
    case toml::node_type::table:
        return "a table";
    default:
        return "a date or time";
    }
}

std::string alternatives(std::span<const std::string> words) {
    std::string all;
    for (std::size_t i = 0; i < words.size(); i++)
        all += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    return all;
}

void Mistakes::add(const toml::source_region& where, std::string key, std::string message) {
    std::string file = where.path && *where.path != first_ ? *where.path : std::string();
    all_.push_back(
        {where.begin.line, where.begin.column, std::move(key), std::move(message), std::move(file)});
}

std::vector<Mistake> Mistakes::take() {
    std::sort(all_.begin(), all_.end(), [](const Mistake& a, const Mistake& b) {
        return std::tie(a.file, a.line, a.column, a.key, a.message) <
               std::tie(b.file, b.line, b.column, b.key, b.message);
    });
    return std::move(all_);
}

const toml::node* Section::find(std::string_view name) {
    known_.emplace_back(name);
    return table_.get(name);
}

std::string Section::key(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Section::mistake(const toml::node& node, std::string_view name, std::string message) {
    mistakes_.add(node.source(), key(name), std::move(message));
}

void Section::mistake(std::string message) {
    mistakes_.add(table_.source(), path_, std::move(message));
}

void Section::expected(const toml::node& node, std::string_view name, std::string_view what) {
    mistake(node, name, fmt::format("expected {}, found {}", what, found(node)));
}

std::optional<std::string> Section::text(std::string_view name, std::string_view what) {
    const toml::node* node = find(name);
    if (node == nullptr) return std::nullopt;
    if (!node->is_string()) {
        expected(*node, name, what);
        return std::nullopt;
    }
    return node->ref<std::string>();
}

void Section::flag(std::string_view name, bool& into) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    if (!node->is_boolean()) return expected(*node, name, "true or false");
    into = node->ref<bool>();
}

void Section::number(std::string_view name, double least, double most, std::string_view what, double& into) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const std::optional<double> value = node->value<double>();
    if ((!node->is_integer() && !node->is_floating_point()) || !value || !(*value >= least && *value <= most))
        return expected(*node, name, fmt::format("{} from {} to {}", what, least, most));
    into = *value;
}

void Section::duration(std::string_view name, std::chrono::seconds most, std::chrono::seconds& into) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const auto span = node->is_string() ? parse_duration(node->ref<std::string>()) : std::nullopt;
    if (!span || span->count() < 1 || *span > most)
        return expected(
            *node, name,
            fmt::format(R"(a time from "1s" to "{}", such as "30s", "5m" or "1h")", duration_text(most)));
    into = *span;
}

void Section::bytes(std::string_view name, std::uint64_t& into) {
    constexpr std::string_view what = R"(a number of bytes, such as 1000000 or "64M")";
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const std::string text = node->is_string()    ? node->ref<std::string>()
                             : node->is_integer() ? found(*node)
                                                  : std::string();
    const Result<std::uint64_t> value = parse_bytes(text);
    if (!value || *value == 0) return expected(*node, name, what);
    into = *value;
}

void Section::elements(std::string_view name, const std::function<void(const toml::node& node)>& take) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    if (const toml::array* array = node->as_array())
        for (const toml::node& element : *array) take(element);
    else
        take(*node);
}

void Section::texts(std::string_view name, std::string_view what,
                    const std::function<void(const toml::node& node, const std::string& text)>& take) {
    elements(name, [&](const toml::node& element) {
        if (element.is_string())
            take(element, element.ref<std::string>());
        else
            expected(element, name, what);
    });
}

void Section::members(std::string_view name, std::vector<std::string>& into) {
    texts(name, "an address, a prefix or a range", [&](const toml::node& node, const std::string& text) {
        if (const auto member = parse_member(text, SIEVE_FIELD_SRC); !member)
            mistake(node, name, member.error().message);
        else
            into.push_back(text);
    });
}

const toml::table* Section::table(std::string_view name) {
    const toml::node* node = find(name);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) expected(*node, name, fmt::format("a table [{}]", key(name)));
    return node->as_table();
}

void Section::finish() {
    std::sort(known_.begin(), known_.end());
    known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
    for (const auto& [name, node] : table_) {
        const std::string text(name.str());
        if (std::find(known_.begin(), known_.end(), text) != known_.end()) continue;
        const std::string closest = closest_word(text, known_);
        mistakes_.add(name.source(), key(printable(text, 64)),
                      closest.empty() ? "unknown key, expected " + alternatives(known_)
                                      : fmt::format("unknown key, did you mean {}?", closest));
    }
}

} // namespace sieve::service
