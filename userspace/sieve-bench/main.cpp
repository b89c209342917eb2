// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// sieve-bench: measures what a lookup, a packet and loading cost here, next to the least they can cost and
// the kernel's own sets.
#include <sys/utsname.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sieve/policy.h>

#include "front-end/console/arguments.hpp"
#include "front-end/console/exit_code.hpp"
#include "front-end/console/output.hpp"
#include "front-end/console/program.hpp"
#include "front-end/console/progress_bar.hpp"
#include "front-end/console/remedy.hpp"
#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/util/files/output.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/number.hpp"
#include "sieve-bench/tables.hpp"

namespace sieve::cli {

namespace {

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
    bool json = false;
    bool quiet = false;

    // Whether lists are loaded by a command.
    [[nodiscard]] bool needs_program() const {
        return prefixes.empty() && sets.empty() && !lookups && !replies && !members && !answers;
    }
};

Result<std::uint64_t> parse_keys(const std::string& text) {
    const std::optional<std::uint64_t> keys = parse_whole(text);
    if (!keys || *keys < 1000 || *keys > 1'000'000'000)
        return invalid_request(
            fmt::format("--keys {}: expected numbers of keys from 1e3 to 1e9, such as 1e4,1e6", text));
    return *keys;
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
    explicit Runner(const BenchArguments& arguments)
        : arguments_(arguments), progress_(progress_bar(arguments.quiet)) {}

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
        if (arguments_.needs_program() && !std::filesystem::exists(program_))
            return bad_input(fmt::format(
                "{}: is not there; sieve-bench loads lists by the xdp-sieve beside it", program_.string()));
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
        if (arguments_.json) print_out("{}\n", json_text(out_));
        if (!arguments_.output.empty())
            SIEVE_TRY(write_output(arguments_.output, json_text(out_) + "\n", numbers, replace));
        return wrong_ == 0;
    }

  private:
    template <class Table>
    void show(const char* name, const Table& table) {
        out_[name].push_back(to_json(table));
        if (arguments_.json) return;
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
    Progress progress_;
    std::vector<std::uint32_t> sets_;
    std::filesystem::path program_ =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "xdp-sieve";
    nlohmann::json out_ = {{"machine", machine()}};
    std::uint64_t wrong_ = 0; // answers that must be right
};

// What was given decides about other values.
struct Given {
    Argument keys;
    Argument rounds;
};

Given describe(Arguments command, BenchArguments& arguments) {
    command.add_flag("--json", arguments.json, "print JSON, for machines");
    command.add_flag("-q,--quiet", arguments.quiet, "no progress bar");
    const Argument keys = command.add("--keys", arguments.keys, "sizes of the sets, as a comma list")
                              .called("NUMBER")
                              .separated_by(',')
                              .show_default();
    Arguments only = command.add_at_most_one("Only", "one part of the benchmark only");
    only.add("--prefixes", arguments.prefixes,
             "lists of prefixes, as a comma list: files, or table:NUMBER and table6:NUMBER for so many "
             "prefixes with the lengths of the global routing table")
        .called("LIST")
        .separated_by(',');
    only.add("--sets", arguments.sets,
             "tables of so many sets that share the keys, as a comma list such as 1,4,16: each set asked by "
             "itself, and all by one lookup")
        .called("NUMBER")
        .separated_by(',');
    only.add_flag("--lookups", arguments.lookups, "lookups in every kind and in the kernel's own sets");
    only.add_flag("--loading", arguments.loading,
                  "lists from file to in force, as commands, beside ipset and nft");
    only.add_flag("--firewalls", arguments.firewalls,
                  "packets over a veth pair, beside nftables, iptables with ipset and xdp-filter");
    only.add_flag(
        "--replies", arguments.replies,
        "what it costs to ask whether a packet answers one of so many flows, and to note those that "
        "leave, beside connection tracking and an LRU hash map");
    only.add("--members", arguments.members,
             "so many lookups of members inside the kernel, of each kind; exit code 1 if one is missed")
        .called("NUMBER");
    only.add("--answers", arguments.answers,
             "so many different IPv4 addresses, at most 2^32, of exact sets, in user space and inside the "
             "kernel; exit code 1 if an answer is wrong")
        .called("NUMBER");
    command.add("--bits-per-key", arguments.bits_per_key, "size of the filters").show_default();
    const Argument rounds = command.add("--rounds", arguments.rounds, "measurements of everything, in turn")
                                .between(3, 1001)
                                .show_default();
    command.add("-o,--output", arguments.output, "write the numbers as JSON to this file, too")
        .called("FILE");
    command.add_flag("--force", arguments.force, "also replace a file that is not a benchmark's output");
    command.add_flag("--quick", arguments.quick, "small sets and few rounds: seconds, not minutes");
    return {keys, rounds};
}

Exit run(int argc, char** argv) {
    BenchArguments arguments;
    Program program("sieve-bench",
                    "Measures what lookups, packets and loading cost here, beside the kernel's own sets.\n"
                    "Exit codes: 0 done, 1 an answer was wrong, 2 usage, 3 bad input, 4 the kernel refused, "
                    "5 the numbers could not be printed.");
    const Given given = describe(program.arguments(), arguments);
    if (const std::optional<Exit> done = program.parse(argc, argv)) return *done;
    if (!given.keys.given()) {
        if (arguments.replies)
            arguments.keys = {"1e3", "1e5", "1e6"};
        else if (arguments.quick)
            arguments.keys = {"1e4", "1e6"};
    }
    if (arguments.quick && !given.rounds.given()) arguments.rounds = 5;
    const Result<bool> all_right = Runner(arguments).run();
    if (all_right) return *all_right ? Exit::done : Exit::no;
    print_error("sieve-bench: {}\n", error_text(all_right.error()));
    return exit_code(all_right.error().kind);
}

} // namespace
} // namespace sieve::cli

int main(int argc, char** argv) {
    using namespace sieve::cli;
    return run_main("sieve-bench", "the sets are", [&] { return run(argc, argv); });
}
