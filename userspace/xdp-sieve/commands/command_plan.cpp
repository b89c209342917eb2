// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve plan: compares every kind of filter for a number of keys.
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/plan.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/number.hpp"
#include "xdp-sieve/arguments/command.hpp"

namespace sieve::cli {

namespace {

struct PlanArguments {
    PlanRequest request;
    std::string memory;
    std::string fields;
};

/// The options of `build` that make the candidate.
std::string build_options(const Candidate& c, const PlanArguments& arguments) {
    std::string options = c.options;
    if (!arguments.fields.empty()) options += fmt::format(" --key {}", arguments.fields);
    if (arguments.request.fpr) options += fmt::format(" --fpr {}", *arguments.request.fpr);
    if (arguments.request.memory) options += fmt::format(" --memory {}", arguments.memory);
    return options;
}

std::string wish(const PlanRequest& request) {
    if (request.fpr) return fmt::format("at most {} of the non-members match", format_rate(*request.fpr));
    if (request.memory) return fmt::format("{} of memory", format_bytes(*request.memory));
    return "each kind at its own size";
}

void print_json(const PlanArguments& arguments, const Plan& plan) {
    nlohmann::json kinds = nlohmann::json::array();
    for (const auto& c : plan.candidates) {
        if (!c.infeasible.empty()) {
            kinds.push_back({{"kind", c.kind}, {"options", c.options}, {"infeasible", c.infeasible}});
            continue;
        }
        kinds.push_back({{"kind", c.kind},
                         {"parameters", c.parameters},
                         {"options", build_options(c, arguments)},
                         {"bytes", c.bytes},
                         {"bits_per_key", c.bits_per_key},
                         {"predicted_fpr", c.fpr},
                         {"lines_per_non_member", c.lines_non_member},
                         {"lines_per_member", c.lines_member},
                         {"build_ns_per_key", c.build_ns}});
    }
    nlohmann::json out = {{"keys", arguments.request.keys}, {"kinds", kinds}, {"reason", plan.reason}};
    if (!arguments.fields.empty()) out["key"] = arguments.fields;
    out["recommended"] = plan.recommended ? kinds[*plan.recommended] : nlohmann::json(nullptr);
    if (plan.for_other_keys) {
        out["for_other_keys"] = kinds[*plan.for_other_keys];
        out["reason_for_other_keys"] = plan.reason_for_other_keys;
    }
    print_out("{}\n", json_text(out));
}

void print_table(const PlanArguments& arguments, const Plan& plan) {
    print_out("{}{}, {}\n\n", format_counted(arguments.request.keys, "key"),
              arguments.fields.empty() ? "" : " of " + arguments.fields, wish(arguments.request));
    print_out("  {:<9} {:<36} {:>10} {:>8} {:>9} {:>15} {:>9}\n", "kind", "parameters", "memory", "bits/key",
              "predicted", "lines a packet", "build");
    print_out("  {:<9} {:<36} {:>10} {:>8} {:>9} {:>15} {:>9}\n", "", "", "", "", "FPR", "miss, hit",
              "ns/key");
    for (std::size_t i = 0; i < plan.candidates.size(); i++) {
        const auto& c = plan.candidates[i];
        const char* mark = plan.recommended == i ? "*" : " ";
        if (!c.infeasible.empty()) {
            print_out("{} {:<9} {}\n", mark, c.kind, c.infeasible);
            continue;
        }
        print_out("{} {:<9} {:<36} {:>10} {:>8.2f} {:>9} {:>7.1f}, {:>5.1f}  {:>9.0f}\n", mark, c.kind,
                  c.parameters, format_bytes(c.bytes), c.bits_per_key, format_rate(c.fpr), c.lines_non_member,
                  c.lines_member, c.build_ns);
    }
    const auto print_recommended = [&](const char* heading, std::size_t index, const std::string& reason) {
        const auto& c = plan.candidates[index];
        print_out("\n{}: {}{}\nbecause it is {}\n  xdp-sieve build {} -o IMAGE FEED...\n", heading, c.kind,
                  c.exact ? "" : ", " + c.parameters, reason, build_options(c, arguments));
    };
    if (!plan.recommended) return print_out("\n{}\n", plan.reason);
    print_recommended(plan.for_other_keys ? "recommended for single addresses" : "recommended",
                      *plan.recommended, plan.reason);
    if (plan.for_other_keys)
        print_recommended("recommended for other keys", *plan.for_other_keys, plan.reason_for_other_keys);
}

Result<Exit> run_plan(PlanArguments& arguments, const Context& context) {
    if (!arguments.memory.empty()) {
        SIEVE_ASSIGN(arguments.request.memory, parse_bytes(arguments.memory));
    }
    if (!arguments.fields.empty()) {
        SIEVE_ASSIGN(arguments.request.fields, parse_fields(arguments.fields));
        arguments.fields = format_fields(arguments.request.fields);
    }
    SIEVE_ASSIGN(const Plan plan, make_plan(arguments.request, progress_bar(context)));
    if (context.json)
        print_json(arguments, plan);
    else
        print_table(arguments, plan);
    return plan.recommended ? Exit::done : Exit::no;
}

} // namespace

void add_plan(CLI::App& app, Context& context) {
    add_command(app, context, "plan", "show every kind of filter for a number of keys, and recommend one",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<PlanArguments>();
                    command.add("--keys", arguments->request.keys, "number of keys")
                        .required()
                        .between(1, most_planned_keys);
                    command.add("--key", arguments->fields, "the fields of a key, if they are known")
                        .called("FIELDS");
                    Arguments size = command.add_at_most_one("size", "what is given, if anything");
                    size.add("--fpr", arguments->request.fpr, "the false positive rate to stay below");
                    size.add("--memory", arguments->memory,
                             "bytes for the whole image, such as 512K, 64M or 1G")
                        .called("BYTES");
                    return [arguments, &context] { return run_plan(*arguments, context); };
                });
}

} // namespace sieve::cli
