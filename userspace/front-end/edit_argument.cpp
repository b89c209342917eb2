// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/edit_argument.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/spec/set_action.hpp"

namespace sieve::cli {

namespace {

using control::Position;

// A word that gives the set a condition on one field.
EditWord word_of(const control::ConditionPart& part) {
    return {part.name, part.value, false, part.help};
}

const std::string actions = control::action_names();

const EditWord words_of_edits[] = {
    {"action", actions.c_str(), false, "what a match does"},
    {"redirect", "TARGET", false, "where matches are sent: an interface, or cpu:NUMBER"},
    {"limit", "PPS[/BURST]", false, "matches over it are dropped: packets a second, and at once"},
    {"replies", "pass|drop", false, "drop: what it drops stays dropped, even an answer to this host"},
    word_of(control::condition_parts()[SIEVE_PART_DPORT]),
    word_of(control::condition_parts()[SIEVE_PART_SPORT]),
    word_of(control::condition_parts()[SIEVE_PART_PROTO]),
    {"before", "NAME", true, "asked before that set"},
    {"after", "NAME", true, "asked after that set"},
    {"first", nullptr, true, "asked before all others"},
    {"last", nullptr, true, "asked after all others"},
};

const std::string expected_edit =
    "expected action=" + actions +
    ", limit=PPS[/BURST], "
    "redirect=INTERFACE|cpu:NUMBER, replies=pass|drop, dport=PORTS, sport=PORTS, "
    "proto=PROTOCOLS, before=NAME, after=NAME, first or last";
constexpr char expected_position[] = "expected before=NAME, after=NAME, first or last";

Status add_word(const std::string& text, control::SetEdit& edit) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto* word =
        std::ranges::find_if(words_of_edits, [&](const EditWord& w) { return name == w.name; });
    const bool has_value = equals != std::string::npos && equals + 1 < text.size();
    if (word == std::end(words_of_edits) || has_value != (word->value != nullptr) ||
        (equals != std::string::npos && word->value == nullptr))
        return invalid_request(fmt::format("`{}`: {}", text, expected_edit));
    const std::string value = has_value ? text.substr(equals + 1) : std::string();
    if (word->places) {
        if (edit.position)
            return invalid_request(fmt::format("`{}`: a set has one place in the order", text));
        edit.position = Position{.where = name == "first"    ? Position::Where::first
                                          : name == "last"   ? Position::Where::last
                                          : name == "before" ? Position::Where::before
                                                             : Position::Where::after,
                                 .other = value};
        return {};
    }
    if (name == "replies") {
        if (value != "pass" && value != "drop")
            return invalid_request(fmt::format("`{}`: expected replies=pass or replies=drop", text));
        edit.keeps_replies_out = value == "drop";
        return {};
    }
    for (const control::ConditionPart& part : control::condition_parts()) {
        if (name != part.name) continue;
        if ((edit.condition.fields & part.field) != 0)
            return invalid_request(fmt::format("`{}`: {}= stands there already", text, name));
        if (const Status done = control::set_condition(edit.condition.to, part, value); !done)
            return invalid_request(fmt::format("`{}`: {}", text, done.error().message));
        edit.condition.fields |= part.field;
        return {};
    }
    if (edit.action) return invalid_request(fmt::format("`{}`: a set has one action", text));
    if (name == "redirect") {
        edit.action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, value};
        return {};
    }
    Result<control::WantedAction> action =
        name == "limit" ? control::parse_limit(value) : control::parse_action(value);
    if (!action) return invalid_request(fmt::format("`{}`: {}", text, action.error().message));
    edit.action = std::move(*action);
    return {};
}

} // namespace

std::span<const EditWord> edit_words() {
    return words_of_edits;
}

Result<control::SetEdit> parse_edit(const std::vector<std::string>& words) {
    control::SetEdit edit;
    for (const std::string& word : words) SIEVE_TRY(add_word(word, edit));
    return edit;
}

Result<control::Position> parse_position(const std::vector<std::string>& words) {
    control::SetEdit edit;
    for (const std::string& word : words) {
        if (Status added = add_word(word, edit);
            !added || edit.action || edit.keeps_replies_out || edit.condition.fields != 0)
            return invalid_request(added || !edit.position ? fmt::format("`{}`: {}", word, expected_position)
                                                           : added.error().message);
    }
    return edit.position.value_or(Position{});
}

} // namespace sieve::cli
