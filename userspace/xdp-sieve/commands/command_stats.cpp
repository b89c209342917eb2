// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve stats: shows the counters, once, or again and again with rates.
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/query/reset_counters.hpp"
#include "libsieve/control/query/sample.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/watch.hpp"
#include "xdp-sieve/reports/set_report.hpp"
#include "xdp-sieve/reports/unreadable.hpp"

namespace sieve::cli {

namespace {

using control::Sample;

nlohmann::json json_of(const sieve_counter& counter) {
    return {{"packets", counter.packets}, {"bytes", counter.bytes}};
}

nlohmann::json json_of(const Sample& sample) {
    const kernel::Stats stats = sample.counted();
    nlohmann::json sets = nlohmann::json::array();
    for (const control::SetStatus& set : sample.table.sets) {
        const sieve_counter hits = sample.hits(set);
        nlohmann::json row = {{"name", set.set.name}, {"packets", hits.packets}, {"bytes", hits.bytes}};
        add_action(row, control::action_of(set.set));
        if (const auto verified = sample.verified(set); verified)
            row["verify"] = {{"non_members", verified->counted.non_members},
                             {"avoided", verified->counted.avoided},
                             {"rate", verified->rate()},
                             {"expected_rate", verified->expected_rate}};
        if (const auto over = sample.over(set); over) row["over_limit"] = json_of(*over);
        sets.push_back(std::move(row));
    }
    nlohmann::json outcomes;
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++) outcomes[kernel::outcome_name(i)] = stats.outcome[i];
    return {{"interface", sample.interface},
            {"hook", kernel::hook_point_name(sample.point)},
            {"program_id", sample.program_id},
            {"packets", sample.seen().packets},
            {"bytes", sample.seen().bytes},
            {"passed", json_of(stats.passed)},
            {"dropped", json_of(stats.dropped)},
            {"redirected", json_of(stats.redirected)},
            {"replied", json_of(stats.replied)},
            {"redirect_failed", stats.redirect_failed},
            {"by_default", stats.by_default()},
            {"default", action_name(sample.table.default_action)},
            {"replies", action_name(sample.table.replies)},
            {"unreadable", unreadable_json(sample.table.unreadable, stats)},
            {"sets", std::move(sets)},
            {"outcomes", std::move(outcomes)}};
}

// One line: packets and bytes, and their rates if these are known.
void print_row(const std::string& name, const sieve_counter& counter,
               const std::optional<control::Rate>& rate) {
    print_out("  {:<32} {:>18} {:>12}", name, format_count(counter.packets), format_bytes(counter.bytes));
    if (rate)
        print_out(" {:>14} pkt/s {:>14} bit/s", format_count(static_cast<std::uint64_t>(rate->packets)),
                  format_count(static_cast<std::uint64_t>(rate->bits)));
    print_out("\n");
}

std::optional<control::Rate> rate_of_set(const std::optional<control::Rates>& rates,
                                         const std::string& name) {
    if (!rates) return std::nullopt;
    const auto found = rates->sets.find(name);
    return found == rates->sets.end() ? std::nullopt : std::optional(found->second);
}

void print_verdicts(const Sample& sample, const std::optional<control::Rates>& rates) {
    const auto rate = [&rates](control::Rate control::Rates::*member) {
        return rates ? std::optional((*rates).*member) : std::nullopt;
    };
    const kernel::Stats stats = sample.counted();
    print_row("seen", sample.seen(), rate(&control::Rates::seen));
    print_row("passed", stats.passed, rate(&control::Rates::passed));
    if (sample.table.replies == SIEVE_ACTION_PASS || stats.replied.packets > 0)
        print_row("  of these as replies", stats.replied, std::nullopt);
    print_row("dropped", stats.dropped, rate(&control::Rates::dropped));
    if (stats.redirected.packets > 0)
        print_row("redirected", stats.redirected, rate(&control::Rates::redirected));
    if (stats.redirect_failed > 0)
        print_out("  {:<32} {:>18}\n", "redirect failed, by default", format_count(stats.redirect_failed));
    print_out("  {:<32} {:>18}\n", fmt::format("by default ({})", action_name(sample.table.default_action)),
              format_count(stats.by_default()));
}

void print_sets(const Sample& sample, const std::optional<control::Rates>& rates) {
    for (const control::SetStatus& set : sample.table.sets)
        print_row(fmt::format("set {} ({})", set.set.name, describe_action(control::action_of(set.set))),
                  sample.hits(set), rate_of_set(rates, set.set.name));
    for (const control::SetStatus& set : sample.table.sets)
        if (const auto over = sample.over(set); over)
            print_row(fmt::format("  over its limit: {}", set.set.name), *over, std::nullopt);
    for (const control::SetStatus& set : sample.table.sets)
        if (const auto verified = sample.verified(set); verified)
            print_out("  {:<32} {:>18} of {} non-members, a rate of {} ({} expected)\n",
                      fmt::format("avoided by verifying {}", set.set.name),
                      format_count(verified->counted.avoided), format_count(verified->counted.non_members),
                      format_rate(verified->rate()), format_rate(verified->expected_rate));
}

void print_outcomes(const Sample& sample) {
    const kernel::Stats stats = sample.counted();
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++)
        if (stats.outcome[i] > 0)
            print_out("  {:<32} {:>18}\n", outcome_row(i), format_count(stats.outcome[i]));
}

void print_table(const Sample& sample, const std::optional<control::Rates>& rates) {
    print_out("{} (program {}, default {}, unreadable {}, replies {})\n",
              hook_title(sample.interface, sample.point), sample.program_id,
              action_name(sample.table.default_action), action_name(sample.table.unreadable),
              action_name(sample.table.replies));
    print_out("  {:<32} {:>18} {:>12}\n", "", "packets", "bytes");
    print_verdicts(sample, rates);
    print_sets(sample, rates);
    print_outcomes(sample);
}

// Resets the counters of these hooks. The samples become what was counted up to then.
Status reset(control::Kernel& kernel, std::vector<Sample>& samples, Context& context) {
    for (Sample& sample : samples) {
        SIEVE_ASSIGN(sample,
                     control::reset_counters(kernel, {.interface = sample.interface, .point = sample.point},
                                             observer(context)));
        context.changed = true;
    }
    return {};
}

Result<Exit> run_stats(std::string interface, const std::string& hook, Watch watch, bool resets,
                       Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_TRY(watch.begin(interface));
    if (resets && watch.on()) return invalid_request("--reset and --watch exclude each other");
    SIEVE_ASSIGN(const control::HookName name, parse_hook(interface, hook));
    control::RealKernel kernel;
    std::vector<Sample> before;
    do {
        SIEVE_ASSIGN(std::vector<Sample> now, control::take_samples(kernel, name));
        if (resets) SIEVE_TRY(reset(kernel, now, context));
        if (context.json) {
            nlohmann::json out = {{"interfaces", nlohmann::json::array()}};
            if (resets) out["reset"] = true;
            for (const Sample& sample : now) out["interfaces"].push_back(json_of(sample));
            // One line per round, so that a reader can follow.
            print_out("{}\n", watch.on() ? json_text(out, json_one_line) : json_text(out));
        } else {
            for (const Sample& sample : now) print_table(sample, control::rates_since(before, sample));
            if (now.empty()) print_out("no interface runs xdp-sieve\n");
            if (resets && !now.empty())
                remark(context, "these were the counts; all counters are at zero now");
            if (watch.on()) print_out("\n");
        }
        before = std::move(now);
    } while (flush_output() && watch.next());
    return Exit::done;
}

} // namespace

void add_stats(CLI::App& app, Context& context) {
    add_command(app, context, "stats", "show packets, bytes, hits and verdicts",
                [&context](Arguments command) -> Action {
                    auto interface = std::make_shared<std::string>(), hook = std::make_shared<std::string>();
                    auto watch = std::make_shared<Watch>();
                    auto resets = std::make_shared<bool>(false);
                    add_interface(command, *interface, "one interface; all of them if not given");
                    watch->add_to(command, "repeat every SECONDS (1), with rates");
                    add_hook(command, *hook, "all of them if not given");
                    command.add_flag("--reset", *resets, "then start all of these counters at zero");
                    return [interface, hook, watch, resets, &context] {
                        return run_stats(*interface, *hook, *watch, *resets, context);
                    };
                });
}

} // namespace sieve::cli
