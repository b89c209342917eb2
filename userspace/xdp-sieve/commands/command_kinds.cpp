// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve kinds: lists the kinds of filter.
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/output.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"

namespace sieve::cli {

namespace {

// What a kind is the default for; empty: nothing.
std::string default_for(const FilterKind& kind) {
    if (kind.facts().number == SIEVE_KIND_EXACT) return "single addresses";
    if (kind.facts().number == SIEVE_KIND_RANGES) return "addresses with prefixes or ranges";
    return &kind == &standard_kind() ? "other keys" : "";
}

void print_json() {
    nlohmann::json kinds = nlohmann::json::array();
    for (const FilterKind* kind : filter_kinds()) {
        const KindFacts& facts = kind->facts();
        kinds.push_back({{"kind", facts.name},
                         {"summary", facts.summary},
                         {"default_for",
                          default_for(*kind).empty() ? nlohmann::json() : nlohmann::json(default_for(*kind))},
                         {"choices",
                          {{"of", facts.choices.many},
                           {"least", facts.choices.least},
                           {"most", facts.choices.most},
                           {"standard", facts.choices.standard}}},
                         {"exact", kind->exact() != nullptr},
                         {"bits_per_key",
                          kind->exact() != nullptr ? nlohmann::json() : nlohmann::json(facts.bits_per_key)},
                         {"takes_alpha", facts.takes_alpha},
                         {"takes_hashes", facts.takes_hashes},
                         {"changes_live", facts.changes_live}});
    }
    print_out("{}\n", json_text(kinds));
}

void print_table() {
    print_out("  {:<9} {:<23} {:>8}  {:<14} {}\n", "kind", "choices", "bits/key", "insert, delete",
              "good for");
    for (const FilterKind* kind : filter_kinds()) {
        const KindFacts& facts = kind->facts();
        const Choices& choices = facts.choices;
        print_out("{} {:<9} {:<23} {:>8}  {:<14} {}\n", default_for(*kind).empty() ? " " : "*", facts.name,
                  choices.least == choices.most ? ""
                                                : fmt::format("{} to {} {} ({})", choices.least, choices.most,
                                                              choices.many, choices.standard),
                  kind->exact() != nullptr ? "exact" : fmt::format("{}", facts.bits_per_key),
                  facts.changes_live ? "yes" : "no", facts.summary);
    }
    print_out("\nFigures in brackets are defaults. * is the default kind\n");
    for (const FilterKind* kind : filter_kinds())
        if (const std::string list = default_for(*kind); !list.empty())
            print_out("  {:<9} for {}\n", kind->facts().name, list);
}

} // namespace

void add_kinds(CLI::App& app, Context& context) {
    add_command(app, context, "kinds", "list the kinds of filter and what they can do",
                [&context](Arguments) -> Action {
                    return [&context]() -> Result<Exit> {
                        (context.json ? print_json : print_table)();
                        return Exit::done;
                    };
                });
}

} // namespace sieve::cli
