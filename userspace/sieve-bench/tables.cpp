// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-bench/tables.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/core.h>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"

namespace sieve::cli {

using bench::Spacing;
using bench::Summary;
using bench::Traffic;

namespace {

constexpr Traffic all_traffic[] = {Traffic::non_members, Traffic::members, Traffic::half};
constexpr Spacing all_spacings[] = {Spacing::together, Spacing::apart};

constexpr Traffic prefix_traffic[] = {Traffic::non_members, Traffic::members};

nlohmann::json to_json(const Summary& summary) {
    return {{"median", summary.median}, {"low", summary.low}, {"high", summary.high}};
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

constexpr std::size_t firewall_traffics = 2; // non-members, members

// How much processor time a packet takes, as a multiple of what the row "xdp-sieve" needs.
Summary to_ours(const bench::FirewallTable& table, const bench::FirewallRow& row, std::size_t arrival,
                std::size_t traffic) {
    const auto ours = std::ranges::find(table.rows, "xdp-sieve", &bench::FirewallRow::name);
    if (ours == table.rows.end()) return {};
    return bench::summarise(
        bench::ratio(row.results[arrival][traffic].nanoseconds, ours->results[arrival][traffic].nanoseconds));
}

} // namespace

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

} // namespace sieve::cli
