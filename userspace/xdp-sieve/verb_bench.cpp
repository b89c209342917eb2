// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve bench: what a lookup costs here, beside what it must cost and what the kernel's own sets cost.
#include <cmath>
#include <cstdlib>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/bench/lookup_bench.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

using bench::Spacing;
using bench::Summary;
using bench::Traffic;

struct BenchArguments {
    std::vector<std::string> keys = {"1e4", "1e5", "1e6", "1e7"};
    double bits_per_key = 16;
    std::uint32_t rounds = 15;
    bool quick = false;
};

constexpr Traffic all_traffic[] = {Traffic::strangers, Traffic::members, Traffic::half};
constexpr Spacing all_spacings[] = {Spacing::together, Spacing::apart};

// "1e6" or "1000000".
Result<std::uint64_t> parse_keys(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    constexpr double least = 1000;
    constexpr double most = 1e9;
    if (end == text.c_str() || *end != '\0' || !(value >= least && value <= most) ||
        value != std::floor(value))
        return usage_error(
            fmt::format("--keys {}: expected numbers of keys from 1e3 to 1e9, such as 1e4,1e6", text));
    return static_cast<std::uint64_t>(value);
}

nlohmann::json to_json(const Summary& summary) {
    return {{"median", summary.median}, {"low", summary.low}, {"high", summary.high}};
}

nlohmann::json to_json(const bench::LookupTable& table) {
    nlohmann::json out = {{"keys", table.keys},
                          {"bits_per_key", table.bits_per_key},
                          {"skipped", table.skipped},
                          {"contestants", nlohmann::json::array()}};
    constexpr const char* roles[] = {"empty", "base", "floor", "touch", "filter", "peer"};
    for (const bench::Contestant& contestant : table.contestants) {
        nlohmann::json entry = {{"name", contestant.name},
                                {"role", roles[static_cast<std::size_t>(contestant.role)]},
                                {"settings", contestant.settings},
                                {"bytes", contestant.bytes}};
        if (contestant.load) entry["load_seconds"] = *contestant.load;
        if (contestant.build) entry["build_seconds"] = *contestant.build;
        if (contestant.fpr) entry["fpr"] = *contestant.fpr;
        for (const Traffic traffic : all_traffic) {
            nlohmann::json& of = entry[bench::traffic_name(traffic)];
            of["found"] = contestant.found[static_cast<std::size_t>(traffic)];
            for (const Spacing spacing : all_spacings)
                of[bench::spacing_name(spacing)] = {
                    {"nanoseconds", to_json(bench::summarise(contestant.times.at(traffic, spacing)))},
                    {"net", to_json(bench::summarise(table.net(contestant, traffic, spacing)))},
                    {"to_floor", to_json(bench::summarise(table.to_floor(contestant, traffic, spacing)))}};
        }
        out["contestants"].push_back(std::move(entry));
    }
    return out;
}

void print_table(const bench::LookupTable& table) {
    fmt::print("\n{} keys, {:.4g} bits per key: nanoseconds a lookup, net of key and hash (multiple of the "
               "floor)\n",
               format_count(table.keys), table.bits_per_key);
    fmt::print("{:<44} {:>19} {:>10} {:>9} {:>8}", "", "", "memory", "load", "FPR");
    for (const Spacing spacing : all_spacings)
        for (const Traffic traffic : all_traffic)
            fmt::print(" {:>16}", fmt::format("{}, {}", bench::traffic_name(traffic),
                                              spacing == Spacing::apart ? "apart" : "tog."));
    fmt::print("\n");
    for (const bench::Contestant& contestant : table.contestants) {
        fmt::print("{:<44} {:>19} {:>10} {:>9} {:>8}", contestant.name, contestant.settings,
                   contestant.bytes == 0 ? "" : format_bytes(contestant.bytes),
                   contestant.load ? fmt::format("{:.1f} ms", *contestant.load * 1e3) : "",
                   contestant.fpr ? fmt::format("{:.1e}", *contestant.fpr) : "");
        for (const Spacing spacing : all_spacings)
            for (const Traffic traffic : all_traffic) {
                const bool raw =
                    contestant.role == bench::Role::empty || contestant.role == bench::Role::base;
                const double net = bench::summarise(raw ? contestant.times.at(traffic, spacing)
                                                        : table.net(contestant, traffic, spacing))
                                       .median;
                const Summary ratio = bench::summarise(table.to_floor(contestant, traffic, spacing));
                fmt::print(" {:>16}", raw ? fmt::format("[{:.1f}]", net)
                                          : fmt::format("{:.1f} ({:.2f})", net, ratio.median));
            }
        fmt::print("\n");
    }
    for (const std::string& reason : table.skipped) fmt::print("left out: {}\n", reason);
}

Result<Exit> run_bench(BenchArguments& arguments, const Context& context) {
    if (arguments.quick) {
        arguments.keys = {"1e4", "1e6"};
        arguments.rounds = 5;
    }
    nlohmann::json out = {{"lookups", nlohmann::json::array()}};
    const Progress progress = progress_bar(context);
    for (const std::string& text : arguments.keys) {
        SIEVE_ASSIGN(const std::uint64_t keys, parse_keys(text));
        bench::LookupOptions options;
        options.keys = keys;
        options.bits_per_key = arguments.bits_per_key;
        options.rounds = arguments.rounds;
        SIEVE_ASSIGN(const bench::LookupTable table, bench::bench_lookups(options, progress));
        if (context.json)
            out["lookups"].push_back(to_json(table));
        else
            print_table(table);
    }
    if (context.json) fmt::print("{}\n", out.dump(2));
    return Exit::done;
}

} // namespace

void add_bench(CLI::App& app, Context& context) {
    add_verb(
        app, context, "bench", "what lookups, packets and loading cost here, beside the kernel's own sets",
        [&context](CLI::App& verb) -> Action {
            auto arguments = std::make_shared<BenchArguments>();
            verb.add_option("--keys", arguments->keys, "sizes of the sets, as a comma list")
                ->delimiter(',')
                ->capture_default_str();
            verb.add_option("--bits-per-key", arguments->bits_per_key, "size of the filters")
                ->capture_default_str();
            verb.add_option("--rounds", arguments->rounds, "measurements of everything, in turn")
                ->check(CLI::Range(3, 1001))
                ->capture_default_str();
            verb.add_flag("--quick", arguments->quick, "small sets and few rounds: seconds, not minutes");
            return [arguments, &context] { return run_bench(*arguments, context); };
        });
}

} // namespace sieve::cli
