// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve query: tells whether keys are in an image.
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/image/image.hpp"
#include "xdp-sieve/command.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/key_arguments.hpp"
#include "xdp-sieve/output.hpp"

namespace sieve::cli {

namespace {

struct QueryArguments {
    std::string image;
    std::vector<std::string> keys;
    bool standard_input = false;
};

Result<Exit> run_query(const QueryArguments& arguments, const Context& context) {
    if (arguments.keys.empty() != arguments.standard_input)
        return invalid_request("query: give keys after the image, or --stdin");
    SIEVE_ASSIGN(Input input, Input::of(arguments.image));
    if (arguments.standard_input) {
        SIEVE_ASSIGN(const Input keys, Input::of("-"));
        SIEVE_TRY(check_repeated({&input, &keys}, Repeated::files));
    }
    SIEVE_ASSIGN(const Image image, Image::load(input));
    const std::uint32_t fields = image.lookup().fields;
    SIEVE_ASSIGN(const KeySet keys,
                 read_key_arguments(arguments.keys, arguments.standard_input, fields, context));

    std::size_t absent = 0;
    nlohmann::json results = nlohmann::json::array();
    for (std::size_t i = 0; i < keys.size(); i++) {
        const sieve_key key = keys.at(i);
        const bool present = image.contains(key);
        if (!present) absent++;
        if (context.json)
            results.push_back({{"key", format_key(key, fields)}, {"present", present}});
        else if (!context.quiet)
            print_out("{} {}\n", format_key(key, fields), present ? "present" : "absent");
    }
    if (context.json)
        print_out("{}\n",
                  json_text(nlohmann::json{
                      {"image", arguments.image}, {"absent", absent}, {"results", std::move(results)}}));
    return absent == 0 ? Exit::done : Exit::no;
}

} // namespace

void add_query(CLI::App& app, Context& context) {
    add_command(app, context, "query", "ask an image for keys; exit 0 if all are present, 1 if not",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<QueryArguments>();
                    command.add("IMAGE", arguments->image, "the image to ask").required();
                    command.add("KEY", arguments->keys,
                                "keys; one argument each, fields separated by commas or blanks");
                    command.add_flag("--stdin", arguments->standard_input,
                                     "read the keys from standard input, as a feed");
                    return [arguments, &context] { return run_query(*arguments, context); };
                });
}

} // namespace sieve::cli
