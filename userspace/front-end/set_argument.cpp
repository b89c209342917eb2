// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/set_argument.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/maps/set_table.hpp"

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

// Whether the piece goes on with the list that the option before it begins. No option is called like a field
// or a protocol, and none begins with a digit.
bool goes_on(const std::string& option, const std::string& piece) {
    const std::string name = option.substr(0, option.find('='));
    if (name == "key") return parse_fields(piece).has_value();
    const auto parts = control::condition_parts();
    const auto part =
        std::ranges::find_if(parts, [&](const control::ConditionPart& one) { return name == one.name; });
    return part != parts.end() && control::continues_list(*part, piece);
}

// A comma inside a list of fields, ports or protocols does not separate options, so the pieces of such a list
// are joined again. The first piece is always the source, whatever it looks like.
std::vector<std::string> join_lists(const std::vector<std::string>& pieces) {
    std::vector<std::string> joined{pieces.front()};
    for (std::size_t i = 1; i < pieces.size(); i++)
        if (joined.size() > 1 && goes_on(joined.back(), pieces[i]))
            joined.back() += "," + pieces[i];
        else
            joined.push_back(pieces[i]);
    return joined;
}

Status set_one_action(control::SetSpec& set, control::WantedAction action) {
    if (set.action) return invalid_request("a set has one action");
    set.action = std::move(action);
    return {};
}

Status set_text(std::string& to, const char* name, const std::optional<std::string>& value) {
    if (!value || value->empty()) return invalid_request(fmt::format("{}= without a value", name));
    to = *value;
    return {};
}

// A child reads it, which works elsewhere.
Status set_file(std::string& to, const char* name, const std::optional<std::string>& value) {
    if (!value || value->empty()) return invalid_request(fmt::format("{}= without a file", name));
    std::error_code error;
    to = std::filesystem::absolute(*value, error).string();
    if (error) return invalid_request(fmt::format("{}={}: {}", name, *value, error.message()));
    return {};
}

Status check_access(const service::HttpAccess& access) {
    const std::vector<service::AccessMistake> mistakes = service::mistakes_of(access);
    if (mistakes.empty()) return {};
    return invalid_request(fmt::format("{}: {}", mistakes[0].key, mistakes[0].message));
}

template <sieve_part Part>
Status set_part(SetArgument& set, const std::optional<std::string>& value) {
    const control::ConditionPart& part = control::condition_parts()[Part];
    if (!value) return invalid_request(fmt::format("expected {}={}", part.name, part.value));
    if ((set.condition.fields & part.field) != 0)
        return invalid_request(fmt::format(
            "{}= stands there twice; expected its values in one list, with commas between them", part.name));
    if (const Status done = control::set_condition(set.condition, part, *value); !done)
        return invalid_request(fmt::format("{}: {}", part.name, done.error().message));
    return {};
}

template <sieve_part Part>
SetOption option_of_part() {
    const control::ConditionPart& part = control::condition_parts()[Part];
    return {part.name, part.value, false, part.help, set_part<Part>};
}

const std::string actions = control::action_names();

const SetOption own_options[] = {
    {"action", actions.c_str(), false, "what a match does",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         SIEVE_ASSIGN(control::WantedAction action, control::parse_action(value.value_or("")));
         return set_one_action(set, std::move(action));
     }},
    {"limit", "PPS[/BURST]", false,
     "matches up to PPS packets per second, and BURST at once, take the default; those over it are dropped",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         SIEVE_ASSIGN(control::WantedAction action, control::parse_limit(value.value_or("")));
         return set_one_action(set, std::move(action));
     }},
    {"redirect", "TARGET", false, "where matches are sent: an interface, or cpu:NUMBER",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_one_action(set, {SIEVE_ACTION_REDIRECT_DEVICE, value.value_or("")});
     }},
    {"replies", "pass|drop", false,
     "drop: what the set drops stays dropped, even if it answers a flow of this host",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         SIEVE_ASSIGN(const sieve_action action, parse_pass_or_drop("replies", value.value_or("")));
         set.keeps_replies_out = action == SIEVE_ACTION_DROP;
         return {};
     }},
    option_of_part<SIEVE_PART_DPORT>(),
    option_of_part<SIEVE_PART_SPORT>(),
    option_of_part<SIEVE_PART_PROTO>(),
    {"verify", "FILE", true, "exact verification of matches",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         if (value && value->empty()) return invalid_request("verify= without a feed");
         set.verify = control::Verification{value.value_or("")};
         return {};
     }},
    {"feed", "FILE", false, "one more feed of this set",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         if (!value || value->empty()) return invalid_request("feed= without a file");
         set.sources.push_back(*value);
         return {};
     }},
    {"header-file", "FILE", false, "lines `NAME: VALUE` of the request's header, for URLs",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_file(set.access.header_file, "header-file", value);
     }},
    {"username", "TEXT", false, "the user, for URLs that want one",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_text(set.access.username, "username", value);
     }},
    {"password-file", "FILE", false, "the user's password in one line",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_file(set.access.password_file, "password-file", value);
     }},
    {"certificates", "FILE", false, "authorities (PEM) to trust, for URLs; the system's if not given",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_file(set.access.server.certificates, "certificates", value);
     }},
    {"client-certificate", "FILE", false, "our certificate (PEM), for URLs that want one",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_file(set.access.server.client_certificate, "client-certificate", value);
     }},
    {"client-key", "FILE", false, "the certificate's key (PEM), if the certificate's file does not hold it",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_file(set.access.server.client_key, "client-key", value);
     }},
    {"proxy", "URL", false, "the proxy to ask, for URLs",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_text(set.access.proxy.url, "proxy", value);
     }},
    {"proxy-username", "TEXT", false, "the user of the proxy, if it wants one",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_text(set.access.proxy.username, "proxy-username", value);
     }},
    {"proxy-password-file", "FILE", false, "the password of the proxy's user in one line",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_file(set.access.proxy.password_file, "proxy-password-file", value);
     }},
    {"user-agent", "TEXT", false, "how we call ourselves, for URLs; xdp-sieve/VERSION if not given",
     [](SetArgument& set, const std::optional<std::string>& value) -> Status {
         return set_text(set.access.user_agent, "user-agent", value);
     }},
};

// Sets an option that only a set has. Returns nothing if the word is no such option.
std::optional<Status> set_own_option(const Word& word, SetArgument& set) {
    const auto* option =
        std::ranges::find_if(own_options, [&](const SetOption& o) { return word.name == o.name; });
    if (option == std::end(own_options)) return std::nullopt;
    return option->set(set, word.value);
}

Status set_option(const std::string& piece, SetArgument& set) {
    const Word word = word_of(piece);
    if (std::optional<Status> own = set_own_option(word, set)) return std::move(*own);
    const auto all = control::build_options();
    const auto option = std::find_if(all.begin(), all.end(),
                                     [&](const control::BuildOption& o) { return word.name == o.name; });
    if (option == all.end())
        return invalid_request(fmt::format(
            "unknown option `{}` of a set, expected action={}, "
            "limit=PPS[/BURST], redirect=INTERFACE|cpu:NUMBER, replies=pass|drop, dport=PORTS, sport=PORTS, "
            "proto=PROTOCOLS, verify, feed=FILE, an option of URLs such as header-file=FILE, or an option of "
            "`build` such as fpr=1e-5",
            piece, control::action_names()));
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

std::string shown_set_argument(const std::string& text) {
    if (text.find('@') == std::string::npos) return '`' + text + '`';
    return '`' + text.substr(0, text.find_first_of("=:@")) + "...`";
}

Result<SetArgument> parse_set_argument(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
        return invalid_request(fmt::format("{}: expected NAME=IMAGE or NAME=FEED", shown_set_argument(text)));
    SetArgument set;
    set.name = text.substr(0, equals);
    if (!kernel::is_set_name(set.name))
        return invalid_request(
            fmt::format("{}: a set's name is {}", shown_set_argument(set.name), kernel::set_name_form()));
    const std::vector<std::string> pieces = join_lists(split(text.substr(equals + 1)));
    if (pieces.front().empty())
        return invalid_request(fmt::format("{}: a set without an image or feed", shown_set_argument(text)));
    set.sources.push_back(pieces.front());
    for (std::size_t i = 1; i < pieces.size(); i++)
        if (Status done = set_option(pieces[i], set); !done)
            return invalid_request(fmt::format("{}: {}", shown_set_argument(text), done.error().message));
    if (Status fits = check_access(set.access); !fits)
        return invalid_request(fmt::format("{}: {}", shown_set_argument(text), fits.error().message));
    return set;
}

Result<sieve_action> parse_pass_or_drop(const char* option, const std::string& text) {
    if (text == "pass") return SIEVE_ACTION_PASS;
    if (text == "drop") return SIEVE_ACTION_DROP;
    return invalid_request(fmt::format("{} {}: expected pass or drop", option, text));
}

} // namespace sieve::cli
