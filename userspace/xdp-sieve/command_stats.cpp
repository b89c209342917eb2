// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve stats: what was counted, once or over and over with rates.
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/kernel/filter_header.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/set_table.hpp"
#include "libsieve/kernel/stats.hpp"
#include "xdp-sieve/command.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/hook_argument.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/output.hpp"
#include "xdp-sieve/set_report.hpp"
#include "xdp-sieve/unreadable.hpp"
#include "xdp-sieve/watch.hpp"

namespace sieve::cli {

namespace {

using Clock = std::chrono::steady_clock;

// One interface's counters at one time.
struct Sample {
    std::string interface;
    std::string hook;  // its name
    std::string title; // of both
    std::uint32_t program_id = 0;
    kernel::TableInForce table;
    kernel::Stats stats;
    std::map<std::uint32_t, double> expected; // by map id: the rates of the verified sets' filters
    Clock::time_point at;

    [[nodiscard]] sieve_counter all() const {
        sieve_counter sum = stats.passed;
        for (const sieve_counter& more : {stats.dropped, stats.redirected}) {
            sum.packets += more.packets;
            sum.bytes += more.bytes;
        }
        return sum;
    }
};

Result<Sample> take_sample(const kernel::Hook& hook) {
    Sample sample{.interface = hook.interface.name,
                  .hook = kernel::hook_point_name(hook.point),
                  .title = hook_title(hook),
                  .program_id = hook.ours->id,
                  .table = {},
                  .stats = {},
                  .expected = {},
                  .at = Clock::now()};
    const kernel::SetTable table(*hook.instance);
    sample.table = table.read();
    SIEVE_ASSIGN(sample.stats, kernel::read_stats(*hook.instance));
    for (const kernel::SetInForce& set : sample.table.sets)
        if (set.exact_id != 0) // a filter that was just swapped away has no rate to show
            if (const auto filter = kernel::read_filter_header(set.map_id); filter)
                sample.expected[set.map_id] = rate_from_bits(filter->file.expected_fpr);
    return sample;
}

Result<std::vector<Sample>> take_samples(const std::string& interface, const std::string& hook_name) {
    std::vector<Sample> samples;
    control::RealKernel real;
    SIEVE_ASSIGN(const control::HookName only, parse_hook(interface, hook_name));
    std::vector<std::string> names{interface};
    if (interface.empty()) {
        names.clear();
        for (const kernel::Interface& each : kernel::all_interfaces()) names.push_back(each.name);
    }
    for (const std::string& name : names) {
        SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks,
                     control::hooks_of(real, {.interface = name, .point = only.point}));
        for (const kernel::Hook& hook : hooks) {
            if (!interface.empty()) SIEVE_TRY(kernel::refuse_unless_ours(hook));
            if (!hook.instance) continue;
            SIEVE_ASSIGN(Sample sample, take_sample(hook));
            samples.push_back(std::move(sample));
        }
    }
    if (samples.empty() && !interface.empty()) {
        SIEVE_ASSIGN(const kernel::Hook hook, control::find_ours(real, only)); // says what is there
        SIEVE_ASSIGN(Sample sample, take_sample(hook));
        samples.push_back(std::move(sample));
    }
    return samples;
}

const Sample* find(const std::vector<Sample>& samples, const Sample& like) {
    for (const Sample& sample : samples)
        if (sample.interface == like.interface && sample.program_id == like.program_id) return &sample;
    return nullptr;
}

nlohmann::json to_json(const sieve_counter& counter) {
    return {{"packets", counter.packets}, {"bytes", counter.bytes}};
}

// What verification showed of a set's filter since that came.
struct Verified {
    sieve_verified counted{};
    double expected = 0; // rate of false positives

    [[nodiscard]] double rate() const {
        return counted.non_members == 0
                   ? 0
                   : static_cast<double>(counted.avoided) / static_cast<double>(counted.non_members);
    }
};

std::optional<Verified> verified_of(const Sample& sample, const kernel::SetInForce& set) {
    const auto expected = sample.expected.find(set.map_id);
    if (set.exact_id == 0 || expected == sample.expected.end()) return std::nullopt;
    return Verified{kernel::difference(sample.stats.verified[set.slot], set.verified_baseline),
                    expected->second};
}

nlohmann::json to_json(const Sample& sample) {
    nlohmann::json sets = nlohmann::json::array();
    for (const kernel::SetInForce& set : sample.table.sets) {
        const sieve_counter hits = kernel::difference(sample.stats.hit[set.slot], set.baseline);
        nlohmann::json row = {{"name", set.name}, {"packets", hits.packets}, {"bytes", hits.bytes}};
        add_action(row, {set.action, set.target});
        if (const auto verified = verified_of(sample, set); verified)
            row["verify"] = {{"non_members", verified->counted.non_members},
                             {"avoided", verified->counted.avoided},
                             {"rate", verified->rate()},
                             {"expected_rate", verified->expected}};
        sets.push_back(std::move(row));
    }
    nlohmann::json outcomes;
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++)
        outcomes[kernel::outcome_name(i)] = sample.stats.outcome[i];
    return {{"interface", sample.interface},
            {"hook", sample.hook},
            {"program_id", sample.program_id},
            {"packets", sample.all().packets},
            {"bytes", sample.all().bytes},
            {"passed", to_json(sample.stats.passed)},
            {"dropped", to_json(sample.stats.dropped)},
            {"redirected", to_json(sample.stats.redirected)},
            {"redirect_failed", sample.stats.redirect_failed},
            {"default", action_name(sample.table.default_action)},
            {"unreadable", unreadable_json(sample.table.unreadable, sample.stats)},
            {"sets", std::move(sets)},
            {"outcomes", std::move(outcomes)}};
}

// Packets and bytes, and with an earlier sample how fast they grow.
struct Row {
    std::string name;
    sieve_counter now{};
    std::optional<sieve_counter> before;
};

void print_row(const Row& row, double seconds) {
    print_out("  {:<32} {:>18} {:>12}", row.name, format_count(row.now.packets), format_bytes(row.now.bytes));
    if (row.before) {
        const sieve_counter grown = kernel::difference(row.now, *row.before);
        print_out(" {:>14} pkt/s {:>14} bit/s",
                  format_count(static_cast<std::uint64_t>(static_cast<double>(grown.packets) / seconds)),
                  format_count(static_cast<std::uint64_t>(8 * static_cast<double>(grown.bytes) / seconds)));
    }
    print_out("\n");
}

void print_table(const Sample& sample, const Sample* before) {
    const double seconds =
        before == nullptr ? 1 : std::chrono::duration<double>(sample.at - before->at).count();
    const auto earlier = [before](const sieve_counter& counter) {
        return before == nullptr ? std::nullopt : std::optional(counter);
    };
    print_out("{} (program {}, default {}, unreadable {})\n", sample.title, sample.program_id,
              action_name(sample.table.default_action), action_name(sample.table.unreadable));
    print_out("  {:<32} {:>18} {:>12}\n", "", "packets", "bytes");
    const Sample& old = before == nullptr ? sample : *before;
    print_row({"seen", sample.all(), earlier(old.all())}, seconds);
    print_row({"passed", sample.stats.passed, earlier(old.stats.passed)}, seconds);
    print_row({"dropped", sample.stats.dropped, earlier(old.stats.dropped)}, seconds);
    if (sample.stats.redirected.packets > 0)
        print_row({"redirected", sample.stats.redirected, earlier(old.stats.redirected)}, seconds);
    if (sample.stats.redirect_failed > 0)
        print_out("  {:<32} {:>18}\n", "without their target, by default",
                  format_count(sample.stats.redirect_failed));
    for (const kernel::SetInForce& set : sample.table.sets) {
        // A set that came in between has no rate yet.
        const kernel::SetInForce* known = old.table.find(set.name);
        const bool same = known != nullptr && known->slot == set.slot;
        print_row({fmt::format("set {} ({})", set.name, describe_action({set.action, set.target})),
                   kernel::difference(sample.stats.hit[set.slot], set.baseline),
                   same ? earlier(kernel::difference(old.stats.hit[set.slot], set.baseline)) : std::nullopt},
                  seconds);
    }
    for (const kernel::SetInForce& set : sample.table.sets)
        if (const auto verified = verified_of(sample, set); verified)
            print_out("  {:<32} {:>18} of {} non-members, a rate of {} ({} expected)\n",
                      fmt::format("avoided by verifying {}", set.name),
                      format_count(verified->counted.avoided), format_count(verified->counted.non_members),
                      format_rate(verified->rate()), format_rate(verified->expected));
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++)
        if (sample.stats.outcome[i] > 0)
            print_out("  {:<32} {:>18}\n", outcome_row(i), format_count(sample.stats.outcome[i]));
}

Result<Exit> run_stats(std::string interface, const std::string& hook, Watch watch, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_TRY(watch.begin(interface));
    std::vector<Sample> before;
    do {
        SIEVE_ASSIGN(std::vector<Sample> now, take_samples(interface, hook));
        if (context.json) {
            nlohmann::json out = {{"interfaces", nlohmann::json::array()}};
            for (const Sample& sample : now) out["interfaces"].push_back(to_json(sample));
            // One line a round, so that a reader can follow.
            print_out("{}\n", watch.on() ? json_text(out, json_one_line) : json_text(out));
        } else {
            for (const Sample& sample : now) print_table(sample, find(before, sample));
            if (now.empty()) print_out("no interface runs xdp-sieve\n");
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
                    command.add("IFACE", *interface, "one interface; all of them if not given");
                    watch->add_to(command, "again every SECONDS (1), with rates");
                    add_hook(command, *hook, "all of them if not given");
                    return [interface, hook, watch, &context] {
                        return run_stats(*interface, *hook, *watch, context);
                    };
                });
}

} // namespace sieve::cli
