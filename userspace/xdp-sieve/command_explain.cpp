// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve explain: which set in force decides about a key, and why.
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libsieve/control/explain.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/find_keys.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "xdp-sieve/command.hpp"
#include "xdp-sieve/explain_report.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/hook_argument.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/output.hpp"

namespace sieve::cli {

namespace {

struct ExplainArguments {
    std::string interface;
    std::string key;
    std::string hook;
    std::string fields;
    std::vector<std::string> feeds;
};

Result<Exit> run_explain(const ExplainArguments& arguments, const Context& context) {
    SIEVE_ASSIGN(const ExplainedKey explained,
                 explain_key(arguments.interface, arguments.hook, arguments.fields, arguments.key, context));
    std::optional<std::string> place;
    const auto& decided = explained.explanation.decided_by;
    if (!arguments.feeds.empty() && decided) {
        const std::uint32_t fields = explained.explanation.sets[*decided].status.filter.lookup.fields;
        KeySet keys(fields);
        keys.add(explained.key);
        SIEVE_ASSIGN(std::vector<Input> inputs, Input::of_all(arguments.feeds));
        SIEVE_ASSIGN(const std::vector<std::string> places,
                     find_keys(inputs, keys,
                               {.format = {}, .skip_invalid = true, .ranges = true, .key_ranges = true}));
        place = places.front();
    }
    if (context.json)
        print_out("{}\n", json_text(explanation_json(explained, place)));
    else
        print_explanation(explained, place);
    return explained.explanation.matched() ? Exit::done : Exit::no;
}

} // namespace

void add_explain(CLI::App& app, Context& context) {
    add_command(
        app, context, "explain",
        "say which set in force decides about a key, and why; exit 0 if a set matches, 1 if not",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<ExplainArguments>();
            command.add("IFACE", arguments->interface, "the interface").required();
            command.add("KEY", arguments->key, "the key, its fields separated by commas or blanks")
                .required();
            add_hook(command, arguments->hook, hook_in_use);
            command.add("--key", arguments->fields, "the key's fields, if the sets' fields leave it open")
                .called("FIELDS");
            command
                .add("--feed", arguments->feeds,
                     "a list that the deciding set was built from: tells a member from a false positive")
                .called("FILE");
            return [arguments, &context] { return run_explain(*arguments, context); };
        });
}

} // namespace sieve::cli
