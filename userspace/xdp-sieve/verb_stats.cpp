// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve stats: what was counted, once or over and over with rates.
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/live_filter.hpp"
#include "libsieve/kernel/set_table.hpp"
#include "libsieve/kernel/stats.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/live_set.hpp"
#include "xdp-sieve/verb.hpp"
#include "xdp-sieve/watch.hpp"

namespace sieve::cli {

namespace {

using Clock = std::chrono::steady_clock;

// One interface's counters at one time.
struct Sample {
    std::string interface;
    std::uint32_t program_id = 0;
    kernel::LiveTable table;
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
                  .program_id = hook.ours->id,
                  .table = {},
                  .stats = {},
                  .expected = {},
                  .at = Clock::now()};
    const kernel::SetTable table(*hook.instance);
    sample.table = table.read();
    SIEVE_ASSIGN(sample.stats, kernel::read_stats(*hook.instance));
    for (const kernel::LiveSet& set : sample.table.sets)
        if (set.exact_id != 0) // a filter that was just swapped away has no rate to show
            if (const auto filter = kernel::read_live_filter(set.map_id); filter)
                sample.expected[set.map_id] = rate_from_bits(filter->file.expected_fpr);
    return sample;
}

Result<std::vector<Sample>> take_samples(const std::string& interface) {
    std::vector<Sample> samples;
    if (!interface.empty()) {
        SIEVE_ASSIGN(const kernel::Hook hook, kernel::find_ours(interface));
        SIEVE_ASSIGN(Sample sample, take_sample(hook));
        samples.push_back(std::move(sample));
        return samples;
    }
    for (const kernel::Interface& each : kernel::all_interfaces()) {
        SIEVE_ASSIGN(const kernel::Hook hook, kernel::read_hook(each));
        if (!hook.instance) continue;
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
        return counted.strangers == 0
                   ? 0
                   : static_cast<double>(counted.avoided) / static_cast<double>(counted.strangers);
    }
};

std::optional<Verified> verified_of(const Sample& sample, const kernel::LiveSet& set) {
    const auto expected = sample.expected.find(set.map_id);
    if (set.exact_id == 0 || expected == sample.expected.end()) return std::nullopt;
    return Verified{kernel::difference(sample.stats.verified[set.slot], set.verified_baseline),
                    expected->second};
}

nlohmann::json to_json(const Sample& sample) {
    nlohmann::json sets = nlohmann::json::array();
    for (const kernel::LiveSet& set : sample.table.sets) {
        const sieve_counter hits = kernel::difference(sample.stats.hit[set.slot], set.baseline);
        nlohmann::json row = {{"name", set.name}, {"packets", hits.packets}, {"bytes", hits.bytes}};
        add_action(row, {set.action, set.target});
        if (const auto verified = verified_of(sample, set); verified)
            row["verify"] = {{"strangers", verified->counted.strangers},
                             {"avoided", verified->counted.avoided},
                             {"rate", verified->rate()},
                             {"expected_rate", verified->expected}};
        sets.push_back(std::move(row));
    }
    nlohmann::json outcomes;
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++)
        outcomes[kernel::outcome_name(i)] = sample.stats.outcome[i];
    return {{"interface", sample.interface},
            {"program_id", sample.program_id},
            {"packets", sample.all().packets},
            {"bytes", sample.all().bytes},
            {"passed", to_json(sample.stats.passed)},
            {"dropped", to_json(sample.stats.dropped)},
            {"redirected", to_json(sample.stats.redirected)},
            {"redirect_failed", sample.stats.redirect_failed},
            {"default", action_name(sample.table.default_action)},
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
    fmt::print("  {:<32} {:>18} {:>12}", row.name, format_count(row.now.packets),
               format_bytes(row.now.bytes));
    if (row.before) {
        const sieve_counter grown = kernel::difference(row.now, *row.before);
        fmt::print(" {:>14} pkt/s {:>14} bit/s",
                   format_count(static_cast<std::uint64_t>(static_cast<double>(grown.packets) / seconds)),
                   format_count(static_cast<std::uint64_t>(8 * static_cast<double>(grown.bytes) / seconds)));
    }
    fmt::print("\n");
}

void print_table(const Sample& sample, const Sample* before) {
    const double seconds =
        before == nullptr ? 1 : std::chrono::duration<double>(sample.at - before->at).count();
    const auto earlier = [before](const sieve_counter& counter) {
        return before == nullptr ? std::nullopt : std::optional(counter);
    };
    fmt::print("{} (program {}, default {})\n", sample.interface, sample.program_id,
               action_name(sample.table.default_action));
    fmt::print("  {:<32} {:>18} {:>12}\n", "", "packets", "bytes");
    const Sample& old = before == nullptr ? sample : *before;
    print_row({"seen", sample.all(), earlier(old.all())}, seconds);
    print_row({"passed", sample.stats.passed, earlier(old.stats.passed)}, seconds);
    print_row({"dropped", sample.stats.dropped, earlier(old.stats.dropped)}, seconds);
    if (sample.stats.redirected.packets > 0)
        print_row({"redirected", sample.stats.redirected, earlier(old.stats.redirected)}, seconds);
    if (sample.stats.redirect_failed > 0)
        fmt::print("  {:<32} {:>18}\n", "without their target, by default",
                   format_count(sample.stats.redirect_failed));
    for (const kernel::LiveSet& set : sample.table.sets) {
        // A set that came in between has no rate yet.
        const kernel::LiveSet* known = old.table.find(set.name);
        const bool same = known != nullptr && known->slot == set.slot;
        print_row({fmt::format("set {} ({})", set.name, describe_action({set.action, set.target})),
                   kernel::difference(sample.stats.hit[set.slot], set.baseline),
                   same ? earlier(kernel::difference(old.stats.hit[set.slot], set.baseline)) : std::nullopt},
                  seconds);
    }
    for (const kernel::LiveSet& set : sample.table.sets)
        if (const auto verified = verified_of(sample, set); verified)
            fmt::print("  {:<32} {:>18} of {} strangers, a rate of {} ({} expected)\n",
                       fmt::format("avoided by verifying {}", set.name),
                       format_count(verified->counted.avoided), format_count(verified->counted.strangers),
                       format_rate(verified->rate()), format_rate(verified->expected));
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++)
        if (sample.stats.outcome[i] > 0)
            fmt::print("  {:<32} {:>18}\n", fmt::format("parsed: {}", kernel::outcome_name(i)),
                       format_count(sample.stats.outcome[i]));
}

Result<Exit> run_stats(std::string interface, Watch watch, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_TRY(watch.begin(interface));
    std::vector<Sample> before;
    do {
        SIEVE_ASSIGN(std::vector<Sample> now, take_samples(interface));
        if (context.json) {
            nlohmann::json out = {{"interfaces", nlohmann::json::array()}};
            for (const Sample& sample : now) out["interfaces"].push_back(to_json(sample));
            // One line a round, so that a reader can follow.
            fmt::print("{}\n", watch.on() ? json_text(out, json_one_line) : json_text(out));
        } else {
            for (const Sample& sample : now) print_table(sample, find(before, sample));
            if (now.empty()) fmt::print("no interface runs xdp-sieve\n");
            if (watch.on()) fmt::print("\n");
        }
        std::fflush(stdout);
        before = std::move(now);
    } while (watch.next());
    return Exit::done;
}

} // namespace

void add_stats(CLI::App& app, Context& context) {
    add_verb(app, context, "stats", "show packets, bytes, hits and verdicts",
             [&context](Arguments verb) -> Action {
                 auto interface = std::make_shared<std::string>();
                 auto watch = std::make_shared<Watch>();
                 verb.add("IFACE", *interface, "one interface; all of them if not given");
                 watch->add_to(verb, "again every SECONDS (1), with rates");
                 return [interface, watch, &context] { return run_stats(*interface, *watch, context); };
             });
}

} // namespace sieve::cli
