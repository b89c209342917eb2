// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve explain: which set in force decides about a key, and why.
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/query/explain.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/geo_data.hpp"
#include "xdp-sieve/reports/explain_report.hpp"

namespace sieve::cli {

namespace {

struct ExplainArguments {
    std::string interface;
    std::vector<std::string> key; // one, unless a shell has parted it
    std::string hook;
    std::string fields;
    std::vector<std::string> feeds;
};

Result<Exit> run_explain(const ExplainArguments& arguments, const Context& context) {
    // Shells part a key at its blanks.
    const std::string key = fmt::format("{}", fmt::join(arguments.key, ","));
    SIEVE_ASSIGN(ExplainedKey explained,
                 explain_key(arguments.interface, arguments.hook, arguments.fields, key, context));
    if (arguments.key.size() > 1)
        return invalid_request(fmt::format("explain: found {} words after {}, expected one key: write `{}`",
                                           arguments.key.size(), arguments.interface, key));
    explained.origin = origin_of(explained.key, explained.fields, context);
    SIEVE_ASSIGN(const std::optional<Searched> searched, search_list(explained, arguments.feeds));
    if (context.json)
        print_out("{}\n", json_text(explanation_json(explained, searched)));
    else
        print_explanation(explained, searched);
    return explained.explanation.matched() ? Exit::done : Exit::no;
}

} // namespace

void add_explain(CLI::App& app, Context& context) {
    add_command(
        app, context, "explain",
        "say which set in force decides about a key, and why; exit 0 if a set matches, 1 if not",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<ExplainArguments>();
            add_interface(command, arguments->interface, "the interface").required();
            command.add("KEY", arguments->key, "the key, its fields separated by commas or blanks")
                .required();
            add_hook(command, arguments->hook, hook_in_use);
            command.add("--key", arguments->fields, "the key's fields, if the sets' fields leave it open")
                .called("FIELDS");
            command
                .add("--feed", arguments->feeds,
                     "a list that the deciding set was built from: tells a member from a false positive; "
                     "without it, the list that the daemon keeps, if one manages the interface")
                .called("FILE");
            return [arguments, &context] { return run_explain(*arguments, context); };
        });
}

} // namespace sieve::cli
