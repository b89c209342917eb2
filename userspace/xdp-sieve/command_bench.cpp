// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve bench: measures what a lookup costs here, next to the least it can cost and the kernel's own
// sets.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <sys/utsname.h>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sieve/policy.h>

#include "front-end/output.hpp"
#include "libsieve/bench/answer_bench.hpp"
#include "libsieve/bench/bench_keys.hpp"
#include "libsieve/bench/firewall_bench.hpp"
#include "libsieve/bench/load_bench.hpp"
#include "libsieve/bench/lookup_bench.hpp"
#include "libsieve/bench/member_bench.hpp"
#include "libsieve/bench/packet_bench.hpp"
#include "libsieve/bench/prefix_bench.hpp"
#include "libsieve/bench/reply_bench.hpp"
#include "libsieve/bench/set_count_bench.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/util/number.hpp"
#include "xdp-sieve/command.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/json_text.hpp"

namespace sieve::cli {

namespace {

using bench::Spacing;
using bench::Summary;
using bench::Traffic;

struct BenchArguments {
    std::vector<std::string> keys = {"1e4", "1e5", "1e6", "1e7"};
    std::vector<std::string> prefixes; // only these workloads
    std::vector<std::string> sets;     // only tables of so many sets
    double bits_per_key = 16;
    std::uint32_t rounds = 15;
    bool lookups = false;                 // likewise
    bool loading = false;                 // likewise
    bool firewalls = false;               // likewise
    bool replies = false;                 // likewise
    std::optional<std::uint64_t> members; // likewise: lookups of members
    std::optional<std::uint64_t> answers; // likewise: addresses that exact sets are asked for
    bool quick = false;
    std::string output;
    bool force = false;
};

constexpr Traffic all_traffic[] = {Traffic::non_members, Traffic::members, Traffic::half};
constexpr Spacing all_spacings[] = {Spacing::together, Spacing::apart};

Result<std::uint64_t> parse_keys(const std::string& text) {
    const std::optional<std::uint64_t> keys = parse_whole(text);
    if (!keys || *keys < 1000 || *keys > 1'000'000'000)
        return invalid_request(
            fmt::format("--keys {}: expected numbers of keys from 1e3 to 1e9, such as 1e4,1e6", text));
    return *keys;
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
                                {"reference", contestant.reference},
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
                    {"to_floor", to_json(bench::summarise(table.to_floor(contestant, traffic, spacing)))},
                    {"to_reference",
                     to_json(bench::summarise(table.to_reference(contestant, traffic, spacing)))}};
        }
        out["contestants"].push_back(std::move(entry));
    }
    return out;
}

void print_peers(const bench::LookupTable& table) {
    print_out("how many times faster `{}` is, net, than\n", table.reference().name);
    for (const bench::Contestant& contestant : table.contestants) {
        if (contestant.role != bench::Role::peer && contestant.fpr != 0) continue;
        print_out("  {:<91}", contestant.name);
        for (const Spacing spacing : all_spacings)
            for (const Traffic traffic : all_traffic)
                print_out(" {:>16.2f}",
                          bench::summarise(table.to_reference(contestant, traffic, spacing)).median);
        print_out("\n");
    }
}

void print_table(const bench::LookupTable& table) {
    print_out("\n{} keys, {:.4g} bits per key: nanoseconds a lookup, net of key and hash (multiple of the "
              "floor)\n",
              format_count(table.keys), table.bits_per_key);
    print_out("{:<44} {:>19} {:>10} {:>9} {:>8}", "", "", "memory", "load", "FPR");
    for (const Spacing spacing : all_spacings)
        for (const Traffic traffic : all_traffic)
            print_out(" {:>16}", fmt::format("{}, {}", bench::traffic_name(traffic),
                                             spacing == Spacing::apart ? "apart" : "tog."));
    print_out("\n");
    for (const bench::Contestant& contestant : table.contestants) {
        print_out("{:<44} {:>19} {:>10} {:>9} {:>8}", contestant.name, contestant.settings,
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
                print_out(" {:>16}", raw ? fmt::format("[{:.1f}]", net)
                                         : fmt::format("{:.1f} ({:.2f})", net, ratio.median));
            }
        print_out("\n");
    }
    print_peers(table);
    for (const std::string& reason : table.skipped) print_out("left out: {}\n", reason);
}

nlohmann::json to_json(const bench::PacketTable& table) {
    nlohmann::json out = {{"keys", table.keys}, {"rows", nlohmann::json::array()}};
    for (const bench::PacketRow& row : table.rows)
        out["rows"].push_back({{"packets", row.family},
                               {"program", row.program},
                               {"traffic", bench::traffic_name(row.traffic)},
                               {"nanoseconds", to_json(bench::summarise(row.nanoseconds))}});
    return out;
}

void print_table(const bench::PacketTable& table) {
    print_out("\nwhole packets, one set of {} keys: nanoseconds a packet inside the kernel (over an empty "
              "program)\n",
              format_count(table.keys));
    for (const bench::PacketRow& row : table.rows) {
        const auto empty = std::ranges::find_if(table.rows, [&](const bench::PacketRow& other) {
            return other.family == row.family && other.program == "empty";
        });
        print_out("{:<12} {:<20} {:<10} {:>7.1f} ({:+.1f})\n", row.family, row.program,
                  bench::traffic_name(row.traffic), bench::summarise(row.nanoseconds).median,
                  bench::summarise(bench::minus(row.nanoseconds, empty->nanoseconds)).median);
    }
}

nlohmann::json to_json(const bench::LinkTable& table) {
    nlohmann::json out = {
        {"keys", table.keys}, {"skipped", table.skipped}, {"rows", nlohmann::json::array()}};
    for (const bench::LinkRow& row : table.rows) {
        nlohmann::json results = nlohmann::json::array();
        for (const bench::LinkResult& result : row.results)
            results.push_back(
                {{"program", result.program},
                 {"packets_per_second", to_json(bench::summarise(result.rate))},
                 {"to_drop", to_json(bench::summarise(bench::ratio(result.rate, row.results[0].rate)))}});
        out["rows"].push_back({{"generator", bench::generator_name(row.generator)},
                               {"offered", row.offered},
                               {"results", std::move(results)}});
    }
    return out;
}

void print_table(const bench::LinkTable& table) {
    print_out("\nveth, one set of {} keys: packets a second (share of what XDP_DROP handles)\n",
              format_count(table.keys));
    for (const bench::LinkRow& row : table.rows) {
        print_out("{}, offered {:.2f} times what XDP_DROP took\n", bench::generator_name(row.generator),
                  row.offered);
        for (const bench::LinkResult& result : row.results)
            print_out("  {:<24} {:>11.0f} ({:.1f}%)\n", result.program, bench::summarise(result.rate).median,
                      bench::summarise(bench::ratio(result.rate, row.results[0].rate)).median * 100);
    }
    for (const std::string& reason : table.skipped) print_out("left out: {}\n", reason);
}

nlohmann::json to_json(const bench::LoadTable& table) {
    nlohmann::json out = {
        {"keys", table.keys}, {"skipped", table.skipped}, {"rows", nlohmann::json::array()}};
    for (const bench::LoadRow& row : table.rows)
        out["rows"].push_back({{"name", row.name},
                               {"seconds", to_json(bench::summarise(row.seconds))},
                               {"bytes", row.bytes},
                               {"bytes_by", row.bytes_by}});
    return out;
}

void print_table(const bench::LoadTable& table) {
    print_out("\n{} keys from file to in force, as commands\n", format_count(table.keys));
    for (const bench::LoadRow& row : table.rows)
        print_out("{:<36} {:>10.1f} ms {:>12} ({})\n", row.name, bench::summarise(row.seconds).median * 1e3,
                  format_bytes(row.bytes), row.bytes_by);
    for (const std::string& reason : table.skipped) print_out("left out: {}\n", reason);
}

nlohmann::json to_json(const bench::MemberTable& table) {
    nlohmann::json out = {{"keys", table.keys}, {"rows", nlohmann::json::array()}};
    for (const bench::MemberRow& row : table.rows)
        out["rows"].push_back(
            {{"kind", row.kind}, {"asked", row.asked}, {"missed", row.missed}, {"seconds", row.seconds}});
    return out;
}

void print_table(const bench::MemberTable& table) {
    print_out("\nmembers of a set of {} keys, asked inside the kernel\n", format_count(table.keys));
    for (const bench::MemberRow& row : table.rows)
        print_out("{:<10} {:>13} asked {:>13} missed {:>9.1f} s\n", row.kind, format_count(row.asked),
                  format_count(row.missed), row.seconds);
}

nlohmann::json to_json(const bench::AnswerTable& table) {
    nlohmann::json out = {{"keys", table.keys}, {"rows", nlohmann::json::array()}};
    for (const bench::AnswerRow& row : table.rows)
        out["rows"].push_back({{"kind", row.kind},
                               {"asked_in", row.kernel ? "kernel" : "user space"},
                               {"asked", row.asked},
                               {"wrong", row.wrong},
                               {"seconds", row.seconds}});
    return out;
}

void print_table(const bench::AnswerTable& table) {
    print_out("\nexact sets of {} keys, asked for different addresses\n", format_count(table.keys));
    for (const bench::AnswerRow& row : table.rows)
        print_out("{:<10} {:<10} {:>13} asked {:>13} wrong {:>9.1f} s\n", row.kind,
                  row.kernel ? "kernel" : "user space", format_count(row.asked), format_count(row.wrong),
                  row.seconds);
}

constexpr std::size_t firewall_traffics = 2; // non-members, members

// How much processor time a packet takes, as a multiple of what the row "xdp-sieve" needs.
Summary to_ours(const bench::FirewallTable& table, const bench::FirewallRow& row, std::size_t arrival,
                std::size_t traffic) {
    const auto ours = std::ranges::find(table.rows, "xdp-sieve", &bench::FirewallRow::name);
    if (ours == table.rows.end()) return {};
    return bench::summarise(
        bench::ratio(row.results[arrival][traffic].nanoseconds, ours->results[arrival][traffic].nanoseconds));
}

nlohmann::json to_json(const bench::FirewallTable& table) {
    nlohmann::json out = {
        {"keys", table.keys}, {"skipped", table.skipped}, {"rows", nlohmann::json::array()}};
    for (const bench::FirewallRow& row : table.rows) {
        nlohmann::json entry = {{"name", row.name}};
        if (!row.load_seconds.empty()) {
            entry["load_seconds"] = to_json(bench::summarise(row.load_seconds));
            entry["bytes"] = row.bytes;
            entry["bytes_by"] = row.bytes_by;
        }
        for (std::size_t arrival = 0; arrival < bench::arrivals.size(); arrival++)
            for (std::size_t traffic = 0; traffic < firewall_traffics; traffic++) {
                const bench::FirewallResult& result = row.results[arrival][traffic];
                entry[bench::arrival_name(bench::arrivals[arrival])]
                     [bench::traffic_name(all_traffic[traffic])] = {
                         {"packets_per_second", to_json(bench::summarise(result.rate))},
                         {"nanoseconds", to_json(bench::summarise(result.nanoseconds))},
                         {"to_xdp_sieve", to_json(to_ours(table, row, arrival, traffic))},
                         {"passed", result.passed}};
            }
        out["rows"].push_back(std::move(entry));
    }
    return out;
}

void print_table(const bench::FirewallTable& table) {
    print_out("\npacket filters over veth, a list of {} addresses: packets a second (nanoseconds of the "
              "receiver's processor a packet, as a multiple of xdp-sieve's)\n",
              format_count(table.keys));
    print_out("{:<26} {:>10} {:>10}", "", "memory", "load");
    for (const bench::Arrival arrival : bench::arrivals)
        for (const char* traffic : {"passed", "dropped"})
            print_out(" {:>28}", fmt::format("{}, {}", bench::arrival_name(arrival), traffic));
    print_out("\n");
    for (const bench::FirewallRow& row : table.rows) {
        const bool listed = !row.load_seconds.empty();
        print_out("{:<26} {:>10} {:>10}", row.name, listed ? format_bytes(row.bytes) : "",
                  listed ? fmt::format("{:.0f} ms", bench::summarise(row.load_seconds).median * 1e3) : "");
        for (std::size_t arrival = 0; arrival < bench::arrivals.size(); arrival++)
            for (std::size_t traffic = 0; traffic < firewall_traffics; traffic++) {
                const bench::FirewallResult& result = row.results[arrival][traffic];
                print_out(" {:>28}",
                          fmt::format("{:.0f} ({:.0f}, {:.2f})", bench::summarise(result.rate).median,
                                      bench::summarise(result.nanoseconds).median,
                                      to_ours(table, row, arrival, traffic).median));
            }
        print_out("\n");
    }
    for (const std::string& reason : table.skipped) print_out("left out: {}\n", reason);
}

constexpr Traffic prefix_traffic[] = {Traffic::non_members, Traffic::members};

nlohmann::json to_json(const bench::PrefixTable& table) {
    nlohmann::json out = {{"workload", table.workload},
                          {"prefixes", table.prefixes},
                          {"ranges", table.ranges},
                          {"skipped", table.skipped},
                          {"contestants", nlohmann::json::array()}};
    for (const bench::PrefixRow& row : table.rows) {
        nlohmann::json entry = {{"name", row.name}, {"bytes", row.bytes}};
        if (row.build) entry["build_seconds"] = *row.build;
        if (row.load) entry["load_seconds"] = *row.load;
        if (row.fpr) entry["fpr"] = *row.fpr;
        for (const Traffic traffic : prefix_traffic)
            for (const Spacing spacing : all_spacings)
                entry[bench::traffic_name(traffic)][bench::spacing_name(spacing)] =
                    to_json(bench::summarise(table.net(row, traffic, spacing)));
        out["contestants"].push_back(std::move(entry));
    }
    return out;
}

void print_table(const bench::PrefixTable& table) {
    print_out("\n{}: {} prefixes, {} ranges after merging: nanoseconds a lookup, net of the key\n",
              table.workload, format_count(table.prefixes), format_count(table.ranges));
    print_out("{:<22} {:>10} {:>9} {:>10} {:>10} {:>8}", "", "memory", "B/prefix", "build", "load", "FPR");
    for (const Spacing spacing : all_spacings)
        for (const Traffic traffic : prefix_traffic)
            print_out(" {:>16}", fmt::format("{}, {}", bench::traffic_name(traffic),
                                             spacing == Spacing::apart ? "apart" : "tog."));
    print_out("\n");
    for (const bench::PrefixRow& row : table.rows) {
        print_out("{:<22} {:>10} {:>9.2f} {:>10} {:>10} {:>8}", row.name, format_bytes(row.bytes),
                  static_cast<double>(row.bytes) / static_cast<double>(table.prefixes),
                  row.build ? fmt::format("{:.1f} ms", *row.build * 1e3) : "",
                  row.load ? fmt::format("{:.1f} ms", *row.load * 1e3) : "",
                  row.fpr ? fmt::format("{:.1e}", *row.fpr) : "");
        for (const Spacing spacing : all_spacings)
            for (const Traffic traffic : prefix_traffic)
                print_out(" {:>16.1f}", bench::summarise(table.net(row, traffic, spacing)).median);
        print_out("\n");
    }
    for (const std::string& reason : table.skipped) print_out("left out: {}\n", reason);
}

nlohmann::json to_json(const bench::SetCountTable& table) {
    nlohmann::json out = {
        {"keys", table.keys}, {"bits_per_key", table.bits_per_key}, {"rows", nlohmann::json::array()}};
    for (const bench::SetCountRow& row : table.rows) {
        nlohmann::json entry = {{"sets", row.sets},   {"joined", row.joined},       {"exact", row.exact},
                                {"bytes", row.bytes}, {"build_seconds", row.build}, {"fpr", row.fpr}};
        for (const Traffic traffic : all_traffic) {
            nlohmann::json& of = entry[bench::traffic_name(traffic)];
            of["nanoseconds"] = to_json(bench::summarise(row.times[static_cast<std::size_t>(traffic)]));
            if (row.sets == 0) continue;
            of["net"] = to_json(bench::summarise(table.net(row, traffic)));
            if (const bench::Rounds ratio = table.to_one(row, traffic); !ratio.empty())
                of["to_one"] = to_json(bench::summarise(ratio));
        }
        out["rows"].push_back(std::move(entry));
    }
    return out;
}

void print_table(const bench::SetCountTable& table) {
    print_out("\n{} keys in all sets together, of kind exact, and of kind xorsat with {:.4g} bits per key: "
              "nanoseconds a packet inside the kernel, net of a table without sets (multiple of one set)\n",
              format_count(table.keys), table.bits_per_key);
    print_out("{:<22} {:>10} {:>9} {:>8}", "", "memory", "build", "FPR");
    for (const Traffic traffic : all_traffic) print_out(" {:>16}", bench::traffic_name(traffic));
    print_out("\n");
    for (const bench::SetCountRow& row : table.rows) {
        if (row.sets == 0) {
            print_out("{:<22} {:>10} {:>9} {:>8}", "no set", "", "", "");
        } else {
            print_out("{:<22} {:>10} {:>9} {:>8}",
                      fmt::format("{} {}{}{}", row.sets, row.exact ? "exact" : "xorsat",
                                  row.sets == 1 ? " set" : " sets", row.joined ? ", joined" : ""),
                      format_bytes(row.bytes), fmt::format("{:.0f} ms", row.build * 1e3),
                      row.exact ? "none" : fmt::format("{:.1e}", row.fpr));
        }
        for (const Traffic traffic : all_traffic) {
            if (row.sets == 0) {
                const auto& times = row.times[static_cast<std::size_t>(traffic)];
                print_out(" {:>16}", fmt::format("[{:.1f}]", bench::summarise(times).median));
                continue;
            }
            const bench::Rounds ratio = table.to_one(row, traffic);
            print_out(" {:>16}",
                      fmt::format("{:.1f}{}", bench::summarise(table.net(row, traffic)).median,
                                  ratio.empty() ? std::string()
                                                : fmt::format(" ({:.2f})", bench::summarise(ratio).median)));
        }
        print_out("\n");
    }
}

nlohmann::json to_json(const bench::ReplyTable& table) {
    nlohmann::json out = {{"flows", table.flows},
                          {"memory_bytes", table.memory_bytes},
                          {"lru_bytes", table.lru_bytes},
                          {"skipped", table.skipped},
                          {"rows", nlohmann::json::array()}};
    for (const bench::ReplyRow& row : table.rows) {
        nlohmann::json entry = {{"program", row.program},
                                {"traffic", bench::reply_traffic_name(row.traffic)},
                                {"nanoseconds", to_json(bench::summarise(row.nanoseconds))},
                                {"more", to_json(bench::summarise(table.more(row)))}};
        if (row.goal) entry["goal"] = *row.goal;
        out["rows"].push_back(std::move(entry));
    }
    return out;
}

void print_table(const bench::ReplyTable& table) {
    constexpr const char* traffics[] = {"no flow: dropped",      "answers a flow",
                                        "not dropped",           "leaves, of a flow",
                                        "leaves, renews a flow", "leaves, begins a flow"};
    print_out("\n{} flows, flow memory {}, LRU hash map {}: nanoseconds a packet inside the kernel, and more "
              "than the row that neither asks nor notes\n",
              format_count(table.flows), format_bytes(table.memory_bytes), format_bytes(table.lru_bytes));
    for (std::size_t i = 0; i < table.rows.size(); i++) {
        const bench::ReplyRow& row = table.rows[i];
        const Summary more = bench::summarise(table.more(row));
        print_out("{:<28} {:<22} {:>7.0f}", row.program, traffics[static_cast<std::size_t>(row.traffic)],
                  bench::summarise(row.nanoseconds).median);
        if (row.base != i) print_out(" {:>+6.0f} ({:+.0f} to {:+.0f})", more.median, more.low, more.high);
        if (row.goal) print_out(", goal {:+.0f}", *row.goal);
        print_out("\n");
    }
    for (const std::string& reason : table.skipped) print_out("left out: {}\n", reason);
}

// Packets and loading are measured only at sizes where their cost matters.
constexpr std::uint64_t least_packet_keys = 1'000'000;
constexpr std::uint64_t least_load_keys = 1'000'000;

// JSON sorts what a run has measured by name. Without the tables on packets, "lookups" comes first.
const OutputKind numbers{.name = "file of a benchmark's numbers",
                         .beginnings = {"{\n  \"answers\": [", "{\n  \"firewalls\": [", "{\n  \"links\": [",
                                        "{\n  \"loading\": [", "{\n  \"lookups\": [", "{\n  \"machine\": {",
                                        "{\n  \"prefixes\": [", "{\n  \"sets\": ["},
                         .mode = 0666};

// The name that the kernel has for the first processor; empty if it has none.
std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    const std::string field = "model name";
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (line.starts_with(field) && colon != std::string::npos) return line.substr(colon + 2);
    }
    return {};
}

// What the numbers are of. Nanoseconds of two machines cannot be compared.
nlohmann::json machine() {
    utsname system{};
    uname(&system);
    return {{"processor", processor_name()},
            {"processors", std::thread::hardware_concurrency()},
            {"kernel", fmt::format("{} {}", system.sysname, system.release)}};
}

class Runner {
  public:
    Runner(const BenchArguments& arguments, const Context& context)
        : arguments_(arguments), context_(context), progress_(progress_bar(context)) {}

    // False if a member was missed, or an exact set gave a wrong answer.
    Result<bool> run() {
        // Refuse bad sizes at once, not after minutes of measuring.
        std::vector<std::uint64_t> sizes;
        for (const std::string& text : arguments_.keys) {
            SIEVE_ASSIGN(const std::uint64_t keys, parse_keys(text));
            sizes.push_back(keys);
        }
        const Replace replace = arguments_.force ? Replace::anything : Replace::ours;
        if (!arguments_.output.empty()) SIEVE_TRY(check_output(arguments_.output, numbers, replace));
        for (const std::string& text : arguments_.sets) {
            const std::optional<std::uint64_t> sets = parse_whole(text);
            if (!sets || *sets < 1 || *sets > SIEVE_MAX_SETS)
                return invalid_request(
                    fmt::format("--sets {}: expected numbers of sets from 1 to {}, such as 1,4,16", text,
                                SIEVE_MAX_SETS));
            sets_.push_back(static_cast<std::uint32_t>(*sets));
        }
        for (const std::string& workload : arguments_.prefixes) SIEVE_TRY(run_prefixes(workload));
        if (!sets_.empty())
            for (const std::uint64_t keys : sizes) SIEVE_TRY(run_sets(keys));
        else if (arguments_.prefixes.empty())
            for (const std::uint64_t keys : sizes)
                SIEVE_TRY(arguments_.lookups     ? run_lookups(keys)
                          : arguments_.loading   ? build_and_run_loading(keys)
                          : arguments_.replies   ? run_replies(keys)
                          : arguments_.firewalls ? build_and_run_firewalls(keys)
                          : arguments_.members   ? run_members(keys)
                          : arguments_.answers   ? run_answers(keys)
                                                 : run_size(keys));
        if (context_.json) print_out("{}\n", json_text(out_));
        if (!arguments_.output.empty())
            SIEVE_TRY(write_output(arguments_.output, json_text(out_) + "\n", numbers, replace));
        return wrong_ == 0;
    }

  private:
    template <class Table>
    void show(const char* name, const Table& table) {
        out_[name].push_back(to_json(table));
        if (context_.json) return;
        print_table(table);
        static_cast<void>(flush_output());
    }

    Status run_prefixes(const std::string& workload) {
        bench::PrefixOptions options;
        options.workload = workload;
        options.rounds = arguments_.rounds;
        SIEVE_ASSIGN(const bench::PrefixTable table, bench::bench_prefixes(options, progress_));
        show("prefixes", table);
        return {};
    }

    Status run_members(std::uint64_t keys) {
        const bench::MemberOptions options{
            .keys = keys, .bits_per_key = arguments_.bits_per_key, .lookups = *arguments_.members};
        SIEVE_ASSIGN(const bench::MemberTable table, bench::bench_members(options, progress_));
        for (const bench::MemberRow& row : table.rows) wrong_ += row.missed;
        show("members", table);
        return {};
    }

    Status run_answers(std::uint64_t keys) {
        if (*arguments_.answers > bench::all_addresses)
            return invalid_request(fmt::format("--answers {}: there are {} IPv4 addresses",
                                               *arguments_.answers, bench::all_addresses));
        const bench::AnswerOptions options{.keys = keys, .addresses = *arguments_.answers};
        SIEVE_ASSIGN(const bench::AnswerTable table, bench::bench_answers(options, progress_));
        for (const bench::AnswerRow& row : table.rows) wrong_ += row.wrong;
        show("answers", table);
        return {};
    }

    Status run_replies(std::uint64_t flows) {
        bench::ReplyOptions options;
        options.flows = flows;
        options.rounds = arguments_.rounds;
        SIEVE_ASSIGN(const bench::ReplyTable table, bench::bench_replies(options, progress_));
        show("replies", table);
        return {};
    }

    Status run_firewalls(const Image& image) {
        bench::FirewallOptions options;
        options.program = program_;
        if (arguments_.quick) options.shorten();
        options.rounds = std::min(arguments_.rounds, options.rounds);
        SIEVE_ASSIGN(const bench::FirewallTable table, bench::bench_firewalls(image, options, progress_));
        show("firewalls", table);
        return {};
    }

    Status build_and_run_firewalls(std::uint64_t keys) {
        SIEVE_ASSIGN(const BuiltSet built, bench::build_exact_set(keys, progress_));
        return run_firewalls(built.image);
    }

    Status build_and_run_loading(std::uint64_t keys) {
        SIEVE_ASSIGN(BuiltSet built, bench::build_exact_set(keys, progress_));
        return run_loading(built.image);
    }

    Status run_loading(Image& image) {
        bench::LoadOptions load;
        load.program = program_;
        load.rounds = std::min(arguments_.rounds, 5U);
        SIEVE_ASSIGN(const bench::LoadTable loading, bench::bench_loading(image, load, progress_));
        show("loading", loading);
        return {};
    }

    Status run_sets(std::uint64_t keys) {
        bench::SetCountOptions options;
        options.keys = keys;
        options.bits_per_key = arguments_.bits_per_key;
        options.sets = sets_;
        options.rounds = arguments_.rounds;
        SIEVE_ASSIGN(const bench::SetCountTable table, bench::bench_set_counts(options, progress_));
        show("sets", table);
        return {};
    }

    Status run_lookups(std::uint64_t keys) {
        bench::LookupOptions options;
        options.keys = keys;
        options.bits_per_key = arguments_.bits_per_key;
        options.rounds = arguments_.rounds;
        SIEVE_ASSIGN(const bench::LookupTable table, bench::bench_lookups(options, progress_));
        show("lookups", table);
        return {};
    }

    Status run_size(std::uint64_t keys) {
        SIEVE_TRY(run_lookups(keys));
        SIEVE_ASSIGN(BuiltSet set, bench::build_exact_set(keys, progress_));
        if (keys >= least_packet_keys) {
            bench::PacketOptions packets;
            packets.rounds = arguments_.rounds;
            SIEVE_ASSIGN(const bench::PacketTable inside,
                         bench::bench_packets(set.image, packets, progress_));
            show("packets", inside);
            SIEVE_ASSIGN(const bench::LinkTable link, bench::bench_link(set.image, packets, progress_));
            show("links", link);
        }
        if (keys >= least_load_keys) SIEVE_TRY(run_loading(set.image));
        return run_firewalls(set.image);
    }

    const BenchArguments& arguments_;
    const Context& context_;
    Progress progress_;
    std::vector<std::uint32_t> sets_;
    std::filesystem::path program_ = std::filesystem::read_symlink("/proc/self/exe");
    nlohmann::json out_ = {{"machine", machine()}};
    std::uint64_t wrong_ = 0; // answers that must be right
};

Result<Exit> run_bench(const BenchArguments& arguments, const Context& context) {
    SIEVE_ASSIGN(const bool all_right, Runner(arguments, context).run());
    return all_right ? Exit::done : Exit::no;
}

} // namespace

void add_bench(CLI::App& app, Context& context) {
    add_command(
        app, context, "bench", "what lookups, packets and loading cost here, beside the kernel's own sets",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<BenchArguments>();
            const Argument keys = command.add("--keys", arguments->keys, "sizes of the sets, as a comma list")
                                      .called("NUMBER")
                                      .separated_by(',')
                                      .show_default();
            Arguments only = command.add_at_most_one("Only", "one part of the benchmark only");
            only.add("--prefixes", arguments->prefixes,
                     "lists of prefixes, as a comma list: files, or table:NUMBER and table6:NUMBER for so "
                     "many "
                     "prefixes with the lengths of the global routing table")
                .called("LIST")
                .separated_by(',');
            only.add("--sets", arguments->sets,
                     "tables of so many sets that share the keys, as a comma list such as 1,4,16: each set "
                     "asked by itself, and all by one lookup")
                .called("NUMBER")
                .separated_by(',');
            only.add_flag("--lookups", arguments->lookups,
                          "lookups in every kind and in the kernel's own sets");
            only.add_flag("--loading", arguments->loading,
                          "lists from file to in force, as commands, beside ipset and nft");
            only.add_flag("--firewalls", arguments->firewalls,
                          "packets over a veth pair, beside nftables, iptables with ipset and xdp-filter");
            only.add_flag("--replies", arguments->replies,
                          "what it costs to ask whether a packet answers one of so many flows, and to note "
                          "those that leave, beside connection tracking and an LRU hash map");
            only.add("--members", arguments->members,
                     "so many lookups of members inside the kernel, of each kind; exit code 1 if one is "
                     "missed")
                .called("NUMBER");
            only.add("--answers", arguments->answers,
                     "so many different IPv4 addresses, at most 2^32, of exact sets, in user space and "
                     "inside the kernel; exit code 1 if an answer is wrong")
                .called("NUMBER");
            command.add("--bits-per-key", arguments->bits_per_key, "size of the filters").show_default();
            const Argument rounds =
                command.add("--rounds", arguments->rounds, "measurements of everything, in turn")
                    .between(3, 1001)
                    .show_default();
            command.add("-o,--output", arguments->output, "write the numbers as JSON to this file, too")
                .called("FILE");
            command.add_flag("--force", arguments->force,
                             "also replace a file that is not a benchmark's output");
            command.add_flag("--quick", arguments->quick, "small sets and few rounds: seconds, not minutes");
            return [arguments, keys, rounds, &context] {
                if (arguments->replies && !keys.given())
                    arguments->keys = {"1e3", "1e5", "1e6"};
                else if (arguments->quick && !keys.given())
                    arguments->keys = {"1e4", "1e6"};
                if (arguments->quick && !rounds.given()) arguments->rounds = 5;
                return run_bench(*arguments, context);
            };
        });
}

} // namespace sieve::cli
