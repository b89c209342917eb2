// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes sets as the command line names them: NAME=SOURCE[,OPTION]...
//
// The model here reads the text as front-end/set_argument.hpp describes it. What must hold: if the model
// knows all options of a text, the text is accepted if and only if the model accepts it. An accepted text
// gives the name, sources, action, verification and fields that it states. A refusal names the argument.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "front-end/set_argument.hpp"
#include "fuzz/support.hpp"
#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/feeds/text/protocols.hpp"

namespace {

using namespace sieve::fuzz;

struct Wanted {
    bool good = false;
    bool known = true; // the model knows all options
    std::string name{};
    std::vector<std::string> sources{};
    std::optional<std::string> action{}; // "drop", or "redirect=eth0"
    std::optional<std::string> verify{};
    std::optional<std::uint32_t> fields{};
    bool skip_invalid = false;
    std::size_t build_options = 0;
};

constexpr std::array<std::string_view, 5> field_names = {"src", "dst", "sport", "dport", "proto"};

// Options that are none of a feed, and whose values this model does not judge.
constexpr std::array<std::string_view, 11> other_options = {
    "replies",    "header-file", "username",   "password-file",  "certificates",       "client-certificate",
    "client-key", "proxy",       "user-agent", "proxy-username", "proxy-password-file"};

std::size_t field_number(std::string_view name) {
    return static_cast<std::size_t>(std::find(field_names.begin(), field_names.end(), name) -
                                    field_names.begin());
}

bool is_name(std::string_view name) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return !name.empty() && name[0] != '.' && name.size() <= 31 &&
           name.find_first_not_of(letters) == std::string_view::npos;
}

std::vector<std::string> pieces_of(std::string_view text) {
    std::vector<std::string> pieces(1);
    for (const char c : text)
        if (c == ',')
            pieces.emplace_back();
        else
            pieces.back() += c;
    return pieces;
}

// Whether a piece after an option `dport=`, `sport=` or `proto=` is one more of its values.
bool is_value_of(std::string_view option, const std::string& piece) {
    if (piece.empty()) return false;
    if (piece[0] >= '0' && piece[0] <= '9') return true;
    return option == "proto" && sieve::protocol_number(piece) >= 0;
}

// A number of plain digits; nothing for any other way to write one, which this model does not judge.
std::optional<std::uint64_t> plain_number(const std::string& text) {
    if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
    return std::stoull(text);
}

void read_limit(const std::string& value, Wanted& wanted) {
    const std::size_t slash = value.find('/');
    const auto rate = plain_number(value.substr(0, slash));
    const auto burst = slash == std::string::npos ? rate : plain_number(value.substr(slash + 1));
    if (!rate || !burst)
        wanted.known = false;
    else if (*rate < 1 || *rate > 100'000'000 || *burst < 1 || *burst > 0xffffffff || *burst > *rate * 86'400)
        wanted.good = false;
    if (wanted.action) wanted.good = false;
    wanted.action = "limit";
}

Wanted read(const std::string& text) {
    Wanted wanted;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return wanted;
    wanted.name = text.substr(0, equals);
    const std::vector<std::string> pieces = pieces_of(std::string_view(text).substr(equals + 1));
    wanted.good = is_name(wanted.name) && !pieces[0].empty();
    wanted.sources.push_back(pieces[0]);
    for (std::size_t i = 1; i < pieces.size(); i++) {
        const std::string& piece = pieces[i];
        const std::size_t cut = piece.find('=');
        const std::string name = piece.substr(0, cut);
        const std::string value = cut == std::string::npos ? "" : piece.substr(cut + 1);
        if (name == "limit" || (name == "action" && value.starts_with("limit="))) {
            read_limit(name == "limit" ? value : value.substr(6), wanted);
        } else if (name == "action" || name == "redirect") {
            const bool known = name == "redirect" || value == "drop" || value == "pass" || value == "count";
            if (wanted.action || !known) wanted.good = false;
            wanted.action = name == "redirect" ? "redirect=" + value : value;
        } else if (name == "verify") {
            if (cut != std::string::npos && value.empty()) wanted.good = false;
            wanted.verify = value;
        } else if (name == "feed") {
            if (value.empty()) wanted.good = false;
            wanted.sources.push_back(value);
        } else if (name == "skip-invalid") {
            if (cut != std::string::npos) wanted.good = false;
            wanted.skip_invalid = true;
            wanted.build_options++;
        } else if (name == "key" && cut != std::string::npos) {
            // The fields go on until the next option, and are in their fixed order.
            wanted.build_options++;
            wanted.fields = 0;
            std::size_t number = field_number(value);
            for (std::size_t last = number;; last = number) {
                if (number == field_names.size())
                    wanted.good = false;
                else
                    *wanted.fields |= 1U << number;
                if (i + 1 == pieces.size()) break;
                number = field_number(pieces[i + 1]);
                if (number == field_names.size()) break;
                if (number <= last) wanted.good = false;
                i++;
            }
        } else if (name == "dport" || name == "sport" || name == "proto") {
            // A condition, whose values this model does not judge. They go on as long as pieces look like
            // values.
            wanted.known = false;
            while (i + 1 < pieces.size() && is_value_of(name, pieces[i + 1])) i++;
        } else if (std::ranges::find(other_options, name) != other_options.end()) {
            wanted.known = false;
        } else {
            wanted.known = false;
            wanted.build_options++;
        }
    }
    return wanted;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    std::set<std::string> words;
    for (const sieve::cli::SetOption& option : sieve::cli::set_options()) {
        if (option.value_optional) words.insert(std::string(",") + option.name);
        words.insert(std::string(",") + option.name + (option.value != nullptr ? "=" : ""));
    }
    for (const sieve::control::BuildOption& option : sieve::control::build_options())
        words.insert(std::string(",") + option.name + (option.value != nullptr ? "=" : ""));
    print_words(*argc, *argv, words);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(data, data + size);
    const Wanted wanted = read(text);
    const auto set = sieve::cli::parse_set_argument(text);
    if (wanted.known) FUZZ_REQUIRE(set.has_value() == wanted.good);
    if (!set) {
        // What may hold a password is not shown.
        if (text.find('@') == std::string::npos)
            FUZZ_REQUIRE(set.error().message.find(wanted.name) != std::string::npos);
        return 0;
    }
    FUZZ_REQUIRE(wanted.good);
    FUZZ_REQUIRE(set->name == wanted.name && set->sources == wanted.sources);
    FUZZ_REQUIRE(set->feed.fields == wanted.fields.value_or(SIEVE_FIELD_SRC));
    FUZZ_REQUIRE(set->feed.skip_invalid == wanted.skip_invalid);
    FUZZ_REQUIRE(set->feed.chosen.size() == wanted.build_options);
    FUZZ_REQUIRE(set->verify.has_value() == wanted.verify.has_value());
    if (wanted.verify) FUZZ_REQUIRE(set->verify->feed == *wanted.verify);
    FUZZ_REQUIRE(set->action.has_value() == wanted.action.has_value());
    if (!wanted.action) return 0;
    const std::string action = set->action->action == SIEVE_ACTION_REDIRECT_DEVICE
                                   ? "redirect=" + set->action->target
                                   : sieve::control::action_name(set->action->action);
    FUZZ_REQUIRE(action == *wanted.action);
    return 0;
}
