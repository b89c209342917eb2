// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve replay: what would become of each packet of a capture, by the real program in the kernel.
#include <linux/bpf.h>

#include <array>
#include <filesystem>
#include <map>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/kernel/exact_map.hpp"
#include "libsieve/kernel/filter_map.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/replay.hpp"
#include "libsieve/kernel/stats.hpp"
#include "libsieve/packets/capture.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/live_set.hpp"
#include "xdp-sieve/packet_key.hpp"
#include "xdp-sieve/set_source.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

struct ReplayArguments {
    std::vector<std::string> sets;
    std::string capture;
    std::string default_action = "pass";
};

// A set as `load` takes it, or a path alone, which names the set by its file.
Result<SetArgument> parse_replay_set(const std::string& text, std::size_t number) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && kernel::is_set_name(text.substr(0, equals)))
        return parse_set_argument(text);
    std::string name = std::filesystem::path(text).stem().string().substr(0, SIEVE_NAME_BYTES - 1);
    if (!kernel::is_set_name(name)) name = fmt::format("set{}", number);
    return SetArgument{.name = name, .path = text, .action = {}, .verify = {}};
}

struct Totals {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::uint64_t passed = 0;
    std::uint64_t dropped = 0;
    std::uint64_t redirected = 0;
    std::array<std::uint64_t, SIEVE_SLOTS> hits{};
    std::array<std::uint64_t, SIEVE_OUTCOME_SLOTS> outcomes{};
    std::uint64_t by_default = 0;
};

void print_packet(const packets::CapturedPacket& packet, const kernel::Replayed& replayed,
                  const kernel::LiveTable& table) {
    nlohmann::ordered_json hits = nlohmann::ordered_json::array();
    for (const kernel::LiveSet& set : table.sets)
        if ((replayed.trace.hits >> set.slot & 1) != 0) hits.push_back(set.name);
    const nlohmann::ordered_json line = {{"packet", packet.number},
                                         {"length", packet.length},
                                         {"verdict", verdict_name(replayed.verdict)},
                                         {"set", replayed.decided_by != nullptr
                                                     ? nlohmann::ordered_json(replayed.decided_by->name)
                                                     : nlohmann::ordered_json()},
                                         {"hits", std::move(hits)},
                                         {"outcome", kernel::outcome_name(replayed.trace.outcome)},
                                         {"key", key_json(replayed.trace.key, replayed.trace.have)}};
    fmt::print("{}\n", json_text(line, json_one_line));
}

void print_totals(const Totals& totals, const kernel::LiveTable& table) {
    const auto row = [&totals](const std::string& name, std::uint64_t packets) {
        fmt::print("{:<32} {:>14} {:>7.2f}%\n", name, format_count(packets),
                   totals.packets == 0
                       ? 0.0
                       : 100 * static_cast<double>(packets) / static_cast<double>(totals.packets));
    };
    row("packets", totals.packets);
    row("passed", totals.passed);
    row("dropped", totals.dropped);
    if (totals.redirected > 0) row("redirected", totals.redirected);
    for (const kernel::LiveSet& set : table.sets)
        row(fmt::format("set {} ({})", set.name, describe_action({set.action, set.target})),
            totals.hits[set.slot]);
    row(fmt::format("by default ({})", action_name(table.default_action)), totals.by_default);
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++)
        if (totals.outcomes[i] > 0)
            row(fmt::format("parsed: {}", kernel::outcome_name(i)), totals.outcomes[i]);
    fmt::print("{} on the wire\n", format_bytes(totals.bytes));
}

Result<Exit> run_replay(const ReplayArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const sieve_action default_action, parse_default(arguments.default_action));
    std::vector<SetArgument> set_arguments;
    for (const std::string& text : arguments.sets) {
        SIEVE_ASSIGN(SetArgument argument, parse_replay_set(text, set_arguments.size() + 1));
        set_arguments.push_back(std::move(argument));
    }
    std::vector<SetSource> sources;
    for (const SetArgument& argument : set_arguments) {
        SIEVE_ASSIGN(SetSource source, find_source(argument.path, argument.verify));
        sources.push_back(std::move(source));
    }
    SIEVE_ASSIGN(const Input captured, Input::of(arguments.capture));
    SIEVE_TRY(check_sources(sources, &captured));
    SIEVE_ASSIGN(packets::Capture capture, packets::Capture::open(arguments.capture));
    kernel::WantedTable table{.default_action = default_action, .sets = {}};
    std::vector<kernel::FilterMap> maps;
    std::vector<kernel::ExactMap> exacts;
    for (std::size_t i = 0; i < set_arguments.size(); i++) {
        const SetArgument& argument = set_arguments[i];
        SIEVE_ASSIGN(const OpenedSet set, open_set(std::move(sources[i]), context));
        SIEVE_ASSIGN(kernel::FilterMap map, kernel::FilterMap::create(set.image, argument.name));
        if (set.exact) {
            SIEVE_ASSIGN(kernel::ExactMap exact, kernel::ExactMap::create(*set.exact, argument.name));
            exacts.push_back(std::move(exact));
        }
        const SetAction action = argument.action.value_or(natural_action(default_action));
        table.sets.push_back({.name = argument.name,
                              .action = action.action,
                              .map_fd = map.fd(),
                              .target = action.target,
                              .exact_fd = set.exact ? exacts.back().fd() : -1});
        maps.push_back(std::move(map));
    }
    SIEVE_ASSIGN(const kernel::Replay replay, kernel::Replay::start(table));

    Totals totals;
    for (;;) {
        SIEVE_ASSIGN(const std::optional<packets::CapturedPacket> packet, capture.next());
        if (!packet) break;
        SIEVE_ASSIGN(const kernel::Replayed replayed, replay.run(packet->bytes));
        totals.packets++;
        totals.bytes += packet->length;
        (replayed.verdict == XDP_DROP       ? totals.dropped
         : replayed.verdict == XDP_REDIRECT ? totals.redirected
                                            : totals.passed)++;
        totals.outcomes[replayed.trace.outcome & (SIEVE_OUTCOME_SLOTS - 1)]++;
        for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++)
            totals.hits[slot] += replayed.trace.hits >> slot & 1;
        if (replayed.trace.decision == SIEVE_NO_SET) totals.by_default++;
        if (context.json) print_packet(*packet, replayed, replay.table());
    }
    if (!context.json) print_totals(totals, replay.table());
    return Exit::done;
}

} // namespace

void add_replay(CLI::App& app, Context& context) {
    add_verb(app, context, "replay", "run a capture through the program in the kernel, without an interface",
             [&context](Arguments verb) -> Action {
                 auto arguments = std::make_shared<ReplayArguments>();
                 verb.add("SET", arguments->sets,
                          "IMAGE or FEED, or NAME=IMAGE|FEED with an action as `load` takes it, asked in "
                          "this order")
                     .required();
                 verb.add("--pcap", arguments->capture, "the capture, pcap or pcapng; - is standard input")
                     .required();
                 verb.add("--default", arguments->default_action,
                          "what becomes of packets that no set decides: pass or drop")
                     .show_default();
                 return [arguments, &context] { return run_replay(*arguments, context); };
             });
}

} // namespace sieve::cli
