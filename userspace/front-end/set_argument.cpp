// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/set_argument.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/set_table.hpp"

namespace sieve::cli {

namespace {

// One part between commas: NAME or NAME=VALUE.
struct Word {
    std::string name;
    std::optional<std::string> value;
};

Word word_of(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return {text, std::nullopt};
    return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> pieces;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t comma = text.find(',', begin);
        pieces.push_back(text.substr(begin, comma == std::string::npos ? comma : comma - begin));
        if (comma == std::string::npos) return pieces;
        begin = comma + 1;
    }
}

// A comma inside a list of fields does not separate options, so the pieces of such a list are joined again.
// The first piece is always the source, whatever it looks like.
std::vector<std::string> join_fields(const std::vector<std::string>& pieces) {
    std::vector<std::string> joined{pieces.front()};
    bool in_key = false;
    for (std::size_t i = 1; i < pieces.size(); i++) {
        const std::string& piece = pieces[i];
        if (in_key && parse_fields(piece)) {
            joined.back() += "," + piece;
            continue;
        }
        in_key = piece.starts_with("key=");
        joined.push_back(piece);
    }
    return joined;
}

Status set_one_action(control::SetSpec& set, control::WantedAction action) {
    if (set.action) return invalid_request("a set has one action");
    set.action = std::move(action);
    return {};
}

constexpr SetOption own_options[] = {
    {"action", "drop|pass|count", false, "what a match does",
     [](control::SetSpec& set, const std::optional<std::string>& value) -> Status {
         SIEVE_ASSIGN(control::WantedAction action, control::parse_action(value.value_or("")));
         return set_one_action(set, std::move(action));
     }},
    {"limit", "PPS[/BURST]", false,
     "matches up to PPS packets per second, and BURST at once, take the default; those over it are dropped",
     [](control::SetSpec& set, const std::optional<std::string>& value) -> Status {
         SIEVE_ASSIGN(control::WantedAction action, control::parse_limit(value.value_or("")));
         return set_one_action(set, std::move(action));
     }},
    {"redirect", "TARGET", false, "where matches are sent: an interface, or cpu:NUMBER",
     [](control::SetSpec& set, const std::optional<std::string>& value) -> Status {
         return set_one_action(set, {SIEVE_ACTION_REDIRECT_DEVICE, value.value_or("")});
     }},
    {"replies", "pass|drop", false,
     "drop: what the set drops stays dropped, even if it answers a flow of this host",
     [](control::SetSpec& set, const std::optional<std::string>& value) -> Status {
         SIEVE_ASSIGN(const sieve_action action, parse_pass_or_drop("replies", value.value_or("")));
         set.keeps_replies_out = action == SIEVE_ACTION_DROP;
         return {};
     }},
    {"verify", "FILE", true, "exact verification of matches",
     [](control::SetSpec& set, const std::optional<std::string>& value) -> Status {
         if (value && value->empty()) return invalid_request("verify= without a feed");
         set.verify = control::Verification{value.value_or("")};
         return {};
     }},
    {"feed", "FILE", false, "one more feed of this set",
     [](control::SetSpec& set, const std::optional<std::string>& value) -> Status {
         if (!value || value->empty()) return invalid_request("feed= without a file");
         set.sources.push_back(*value);
         return {};
     }},
};

// Sets an option that only a set has. Returns nothing if the word is no such option.
std::optional<Status> set_own_option(const Word& word, control::SetSpec& set) {
    const auto* option =
        std::ranges::find_if(own_options, [&](const SetOption& o) { return word.name == o.name; });
    if (option == std::end(own_options)) return std::nullopt;
    return option->set(set, word.value);
}

Status set_option(const std::string& piece, control::SetSpec& set) {
    const Word word = word_of(piece);
    if (std::optional<Status> own = set_own_option(word, set)) return std::move(*own);
    const auto all = control::build_options();
    const auto option = std::find_if(all.begin(), all.end(),
                                     [&](const control::BuildOption& o) { return word.name == o.name; });
    if (option == all.end())
        return invalid_request(fmt::format(
            "unknown option `{}` of a set, expected action=drop|pass|count, "
            "limit=PPS[/BURST], redirect=INTERFACE|cpu:NUMBER, replies=pass|drop, verify, feed=FILE, or an "
            "option of "
            "`build` such as fpr=1e-5",
            piece));
    if (word.value.has_value() != (option->value != nullptr))
        return invalid_request(option->value != nullptr
                                   ? fmt::format("expected {}={}", option->name, option->value)
                                   : fmt::format("{} takes no value", option->name));
    return control::set_build_option(*option, word.value.value_or(""), piece, set.feed);
}

} // namespace

std::span<const SetOption> set_options() {
    return own_options;
}

Result<control::SetSpec> parse_set_argument(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
        return invalid_request(fmt::format("`{}`: expected NAME=IMAGE or NAME=FEED", text));
    control::SetSpec set;
    set.name = text.substr(0, equals);
    if (!kernel::is_set_name(set.name))
        return invalid_request(fmt::format("`{}`: a set's name is {}", set.name, kernel::set_name_form()));
    const std::vector<std::string> pieces = join_fields(split(text.substr(equals + 1)));
    if (pieces.front().empty())
        return invalid_request(fmt::format("`{}`: a set without an image or feed", text));
    set.sources.push_back(pieces.front());
    for (std::size_t i = 1; i < pieces.size(); i++)
        if (Status done = set_option(pieces[i], set); !done)
            return invalid_request(fmt::format("`{}`: {}", text, done.error().message));
    return set;
}

Result<sieve_action> parse_pass_or_drop(const char* option, const std::string& text) {
    if (text == "pass") return SIEVE_ACTION_PASS;
    if (text == "drop") return SIEVE_ACTION_DROP;
    return invalid_request(fmt::format("{} {}: expected pass or drop", option, text));
}

} // namespace sieve::cli
