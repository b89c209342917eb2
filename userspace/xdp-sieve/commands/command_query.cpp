// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve query: tells whether keys are in an image.
#include <net/if.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/find_keys.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/key_arguments.hpp"
#include "xdp-sieve/reports/explain_report.hpp"

namespace sieve::cli {

namespace {

struct QueryArguments {
    std::string image;
    std::vector<std::string> keys;
    bool standard_input = false;
    std::vector<std::string> feeds;
    std::string hook;
    std::string fields;
};

// More keys than these are not looked for in a feed, because each entry is compared with each key.
constexpr std::size_t most_sought = 1000;

// Whether the argument names an interface and not an image.
bool names_interface(const std::string& text) {
    return text != "-" && ::access(text.c_str(), F_OK) != 0 && ::if_nametoindex(text.c_str()) != 0;
}

Result<std::vector<std::string>> find_places(const std::vector<std::string>& feeds, const KeySet& keys) {
    if (feeds.empty()) return std::vector<std::string>(keys.size());
    if (keys.size() > most_sought)
        return invalid_request(
            fmt::format("query: {} keys to look for in a feed, at most {} can be", keys.size(), most_sought));
    SIEVE_ASSIGN(std::vector<Input> inputs, Input::of_all(feeds));
    return find_keys(inputs, keys, {.format = {}, .skip_invalid = true, .ranges = true, .key_ranges = true});
}

// Asks the sets in force at an interface.
Result<Exit> query_interface(const QueryArguments& arguments, const Context& context) {
    if (arguments.standard_input || arguments.keys.empty())
        return invalid_request(
            fmt::format("query: give keys after {}, which is an interface", arguments.image));
    bool all = true;
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    for (const std::string& text : arguments.keys) {
        SIEVE_ASSIGN(const ExplainedKey explained,
                     explain_key(arguments.image, arguments.hook, arguments.fields, text, context));
        SIEVE_ASSIGN(const std::optional<Searched> searched, search_list(explained, arguments.feeds));
        all = all && explained.explanation.matched();
        if (context.json)
            results.push_back(explanation_json(explained, searched));
        else if (!context.quiet)
            print_explanation(explained, searched);
    }
    if (context.json)
        print_out("{}\n", json_text(nlohmann::ordered_json{{"interface", arguments.image},
                                                           {"results", std::move(results)}}));
    return all ? Exit::done : Exit::no;
}

Result<Exit> run_query(const QueryArguments& arguments, const Context& context) {
    if (names_interface(arguments.image)) return query_interface(arguments, context);
    if (!arguments.hook.empty() || !arguments.fields.empty())
        return invalid_request("query: --hook and --key go with an interface, not with an image");
    if (arguments.keys.empty() != arguments.standard_input)
        return invalid_request("query: give keys after the image, or --stdin");
    SIEVE_ASSIGN(Input input, Input::of(arguments.image));
    if (arguments.standard_input) {
        SIEVE_ASSIGN(const Input keys, Input::of("-"));
        SIEVE_TRY(check_repeated({&input, &keys}, Repeated::files));
    }
    SIEVE_ASSIGN(const Image image, Image::load(input));
    const std::uint32_t fields = image.lookup().fields;
    const bool is_exact = kind_of(image.lookup()).exact() != nullptr;
    SIEVE_ASSIGN(const KeySet keys,
                 read_key_arguments(arguments.keys, arguments.standard_input, fields, context));

    SIEVE_ASSIGN(const std::vector<std::string> places, find_places(arguments.feeds, keys));
    std::size_t absent = 0;
    nlohmann::json results = nlohmann::json::array();
    for (std::size_t i = 0; i < keys.size(); i++) {
        const sieve_key key = keys.at(i);
        const bool present = image.contains(key);
        if (!present) absent++;
        const bool sought = !arguments.feeds.empty();
        if (context.json) {
            results.push_back({{"key", format_key(key, fields)}, {"present", present}});
            if (sought)
                results.back()["place"] = places[i].empty() ? nlohmann::json() : nlohmann::json(places[i]);
        } else if (!context.quiet) {
            print_out("{} {}{}\n", format_key(key, fields), present ? "present" : "absent",
                      !sought              ? ""
                      : !places[i].empty() ? ": " + places[i]
                      : !present           ? ""
                      : is_exact           ? ": a member, but the list does not have it"
                                           : ": a false positive");
        }
    }
    if (context.json)
        print_out("{}\n",
                  json_text(nlohmann::json{
                      {"image", arguments.image}, {"absent", absent}, {"results", std::move(results)}}));
    return absent == 0 ? Exit::done : Exit::no;
}

} // namespace

void add_query(CLI::App& app, Context& context) {
    add_command(
        app, context, "query",
        "ask an image, or the sets in force at an interface, for keys; exit 0 if all are present, 1 if not",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<QueryArguments>();
            command.add("IMAGE", arguments->image, "the image or interface to ask").required();
            command.add("KEY", arguments->keys,
                        "keys; one argument each, fields separated by commas or blanks");
            command.add_flag("--stdin", arguments->standard_input,
                             "read the keys from standard input, as a feed");
            command
                .add("--feed", arguments->feeds,
                     "a list that the image was built from: says where a key is on it, or that a match "
                     "is a false positive")
                .called("FILE");
            add_hook(command, arguments->hook, "of an interface; the one in use if not given");
            command
                .add("--key", arguments->fields,
                     "of an interface: the keys' fields, if the sets' fields leave it open")
                .called("FIELDS");
            return [arguments, &context] { return run_query(*arguments, context); };
        });
}

} // namespace sieve::cli
