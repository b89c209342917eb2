// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What `nft list set` and `nft list ruleset` print, and files of nft's commands:
//
//     set NAME { type ipv4_addr . inet_service; elements = { 192.0.2.1 . 443 timeout 1h, ... } }
//     add element inet filter NAME { 192.0.2.1, 192.0.2.8/29, 192.0.2.32-192.0.2.40 }
//     define NAME = { 192.0.2.1, 192.0.2.2 }
//
// Commands that take elements out again, or only ask about them, are refused: a list says what is in a set.
// So are elements that are elsewhere: in a file that is included, or in a variable that the list does not
// define, or defines anew.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::formats {

namespace {

constexpr std::string_view signs = "{}=,;";

// One sign, one word, or one quotation.
struct Token {
    std::string_view text{};
    std::uint64_t line = 1;
    bool quoted = false;

    [[nodiscard]] bool is(std::string_view sign) const { return !quoted && text == sign; }
    [[nodiscard]] bool is_variable() const { return !quoted && text.starts_with('$'); }
};

class Tokens {
  public:
    explicit Tokens(std::string_view text) : text_(text) {}

    // Nothing at the end.
    std::optional<Token> next() {
        skip();
        if (text_.empty()) return std::nullopt;
        Token token;
        token.line = line_;
        if (text_[0] == '"') {
            const std::size_t end = std::min(text_.find('"', 1), text_.size());
            token.text = text_.substr(1, end - 1);
            token.quoted = true;
            for (const char c : token.text) line_ += c == '\n' ? 1 : 0;
            text_.remove_prefix(std::min(end + 1, text_.size()));
            return token;
        }
        const std::size_t size = signs.find(text_[0]) != std::string_view::npos
                                     ? 1
                                     : std::min(text_.find_first_of(" \t\r\n\"{}=,;"), text_.size());
        token.text = text_.substr(0, size);
        text_.remove_prefix(size);
        return token;
    }

  private:
    void skip() {
        while (!text_.empty()) {
            if (text_[0] == '#') {
                text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
            } else if (text_[0] == '\n') {
                line_++;
                text_.remove_prefix(1);
            } else if (text_[0] == ' ' || text_[0] == '\t' || text_[0] == '\r' || text_[0] == '\\') {
                text_.remove_prefix(1);
            } else {
                return;
            }
        }
    }

    std::string_view text_;
    std::uint64_t line_ = 1;
};

bool is_option(const Token& token) {
    for (const std::string_view option :
         {"timeout", "expires", "counter", "comment", "last", "limit", "quota", "ct"})
        if (token.is(option)) return true;
    return false;
}

class Ruleset {
  public:
    Ruleset(const ListFormat& format, std::uint32_t fields, std::string_view document, const EntrySink& sink)
        : wanted_(format.parts.empty() ? std::string() : format.parts.front()),
          chosen_(!format.parts.empty()), fields_(fields), tokens_(document), sink_(sink) {}

    Status read() {
        std::string_view word;
        while (const auto token = tokens_.next()) {
            const std::string_view before =
                std::exchange(word, token->quoted ? std::string_view() : token->text);
            if (takes_out(before, *token)) {
                read_removal(before, *token);
            } else if (token->is("include")) {
                const auto file = tokens_.next();
                bad(token->line, fmt::format("found an include of {}, expected all elements in one file",
                                             entry::quote(file ? file->text : "")));
            } else if (token->is("redefine") || token->is("undefine")) {
                const auto name = tokens_.next();
                bad_definition(*token, name ? name->text : "");
            } else if (token->is("table")) {
                table_ = next_name();
            } else if (token->is("set") || token->is("map") || token->is("define")) {
                if (before == "add" || before == "create") table_ = next_name();
                if (const auto name = tokens_.next()) set_ = name->text;
                is_map_ = token->is("map");
                if (token->is("define")) SIEVE_TRY(read_definition(*token));
            } else if (token->is("element")) {
                adds_not_ = adds_nothing(before);
                SIEVE_TRY(read_command());
                adds_not_ = {};
            } else if (token->is("elements")) {
                if (const auto sign = tokens_.next(); !sign || !sign->is("=")) continue;
                const auto value = tokens_.next();
                if (value && value->is("{")) SIEVE_TRY(read_elements());
                if (value && value->is_variable()) read_variable(*value);
            }
        }
        return {};
    }

  private:
    // Whether these two words begin a command that empties a set, or more. `flush table` leaves its sets
    // alone.
    static bool takes_out(std::string_view command, const Token& what) {
        if (command == "flush") return what.is("set") || what.is("ruleset");
        return (command == "delete" || command == "destroy") && (what.is("set") || what.is("table"));
    }
    // Why the elements of such a command are none of a list; empty if they are.
    static std::string_view adds_nothing(std::string_view command) {
        if (command == "delete" || command == "destroy")
            return "a command that takes elements out, expected elements that stay";
        if (command == "get" || command == "reset")
            return "a command that only asks about elements, expected elements that are added";
        return {};
    }
    // Behind an optional family.
    std::string next_name() {
        auto name = tokens_.next();
        for (const std::string_view family : {"ip", "ip6", "inet", "arp", "bridge", "netdev"})
            if (name && name->is(family)) name = tokens_.next();
        return name ? std::string(name->text) : std::string();
    }
    // Behind such words: [FAMILY] TABLE SET, [FAMILY] TABLE, or nothing.
    void read_removal(std::string_view command, const Token& what) {
        if (!what.is("ruleset")) {
            const std::string table = next_name();
            if (what.is("set")) {
                const auto name = tokens_.next();
                if (!name || !filled_.contains({table, std::string(name->text)})) return;
            } else if (std::ranges::none_of(filled_, [&](const auto& set) { return set.first == table; })) {
                return;
            }
        }
        if (!filled_.empty())
            bad(what.line,
                fmt::format("found \"{} {}\" behind elements of the set {}, expected elements that stay",
                            command, what.text, entry::quote(wanted_)));
    }
    // Behind `define NAME`: values without braces define no list.
    Status read_definition(const Token& word) {
        if (const auto sign = tokens_.next(); !sign || !sign->is("=")) return {};
        const auto brace = tokens_.next();
        if (!brace || !brace->is("{")) return {};
        // In a table of its own it is another variable.
        if (!defined_.insert(set_).second && (!chosen_ || set_ == wanted_)) bad_definition(word, set_);
        defines_ = true;
        Status read = read_elements();
        defines_ = false;
        return read;
    }
    // Elements that are a variable: those of a list that is defined above, which were read there.
    void read_variable(const Token& variable) {
        if (chosen_ && set_ != wanted_) return;
        const std::string name(variable.text.substr(1));
        if (!adds_not_.empty()) return bad_element(variable.line, variable.text);
        if (!defined_.contains(name) || (chosen_ && name != wanted_))
            return bad(variable.line,
                       fmt::format("found {} as elements of the set {}, expected them in braces{}",
                                   entry::quote(variable.text), entry::quote(set_),
                                   chosen_ ? "" : ", or a list that is defined above"));
        filled_.emplace(table_, set_);
    }
    // Behind `add element`: [FAMILY] TABLE SET {.
    Status read_command() {
        while (const auto token = tokens_.next()) {
            if (token->is("{")) return read_elements();
            if (token->is_variable()) {
                read_variable(*token);
                return {};
            }
            table_ = std::exchange(set_, token->text);
            is_map_ = false;
        }
        return {};
    }
    // Behind the opening brace.
    Status read_elements() {
        std::vector<std::string> value;
        std::uint64_t line = 0;
        bool options = false;
        bool timed = false;
        bool mapped = false; // what follows is not the key
        while (const auto token = tokens_.next()) {
            const bool ends = token->is("}");
            if (ends || token->is(",")) {
                if (!value.empty())
                    element(value, line, mapped || is_map_, timed ? Translated::timed : Translated::entry);
                value.clear();
                options = timed = false;
                mapped = false;
                if (ends) return {};
                continue;
            }
            if (token->is(":")) mapped = true;
            if (is_option(*token)) options = true;
            if (options && (token->is("timeout") || token->is("expires"))) timed = true;
            if (options || mapped || token->is(".")) continue;
            if (value.empty()) line = token->line;
            value.emplace_back(token->text);
        }
        return bad_input(
            fmt::format("the set {} does not end: a closing brace is missing", entry::quote(set_)));
    }
    void element(const std::vector<std::string>& value, std::uint64_t line, bool maps, Translated what) {
        if (!chosen_ && wanted_.empty()) wanted_ = set_;
        if (set_ != wanted_) {
            if (chosen_) return;
            return bad(line,
                       fmt::format("found an element of the set {} behind elements of {}, expected one set; "
                                   "choose one, as in nft:{}",
                                   entry::quote(set_), entry::quote(wanted_), entry::quote(set_)));
        }
        if (!adds_not_.empty()) return bad_element(line, fmt::format("{}", fmt::join(value, " ")));
        if (!defines_) filled_.emplace(table_, set_);
        if (maps) return bad(line, fmt::format("{} is a map, expected a set", entry::quote(set_)));
        std::string text;
        entry::Fault fault;
        const bool good = order_components(value, fields_, text, fault);
        sink_({.line = line}, good ? what : Translated::bad, text, fault);
    }
    void bad_element(std::uint64_t line, std::string_view what) {
        bad(line, fmt::format("found {} in {}", entry::quote(what), adds_not_));
    }
    void bad_definition(const Token& word, std::string_view name) {
        bad(word.line, fmt::format("found \"{} {}\", expected each variable defined once", word.text,
                                   printable(name, 64)));
    }
    void bad(std::uint64_t line, std::string sentence) {
        sink_({.line = line}, Translated::bad, {}, fault_of(std::move(sentence)));
    }

    std::string wanted_;
    bool chosen_;
    std::uint32_t fields_;
    Tokens tokens_;
    const EntrySink& sink_;
    std::string set_;
    std::string table_;
    bool is_map_ = false;
    std::string_view adds_not_;                            // adds_nothing() of the command
    bool defines_ = false;                                 // what is read is a variable's list
    std::set<std::string> defined_;                        // the variables that are lists
    std::set<std::pair<std::string, std::string>> filled_; // table and set: those with such elements so far
};

// The commands of nft that name sets.
bool is_nft(std::string_view line, std::uint32_t) {
    for (const std::string_view word : {"table", "set", "define", "flush"})
        if (starts_with_word(line, word)) return true;
    if (!starts_with_word(line, "add") && !starts_with_word(line, "create"))
        return line.starts_with("elements");
    (void)take_word(line);
    const std::string_view what = take_word(line);
    return what == "element" || what == "table" || what == "set";
}

Status translate_nft(const ListFormat& format, std::uint32_t fields, std::string_view document,
                     const EntrySink& sink) {
    return Ruleset(format, fields, document, sink).read();
}

} // namespace

const FormatReader nft_format = {.is_first_line = is_nft, .document = translate_nft};

} // namespace sieve::formats
