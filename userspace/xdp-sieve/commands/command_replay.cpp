// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve replay: tells what the real program in the kernel would do with each packet of a capture.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "front-end/set_argument.hpp"
#include "libsieve/control/query/replay.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/spec/source.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/packets/capture.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/geo_data.hpp"
#include "xdp-sieve/arguments/packet_key.hpp"
#include "xdp-sieve/reports/set_report.hpp"
#include "xdp-sieve/reports/unreadable.hpp"

namespace sieve::cli {

namespace {

struct ReplayArguments {
    std::vector<std::string> sets;
    std::string capture;
    std::string default_action = "pass";
    std::string unreadable = "drop";
    std::string hook;
};

// A set as `load` takes it, or a path alone; then the file's name becomes the set's name.
Result<control::SetSpec> parse_replay_set(const std::string& text, std::size_t number,
                                          const Context& context) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && kernel::is_set_name(text.substr(0, equals)))
        return parse_set(text, context);
    std::string name = std::filesystem::path(text).stem().string().substr(0, SIEVE_NAME_BYTES - 1);
    if (!kernel::is_set_name(name)) name = fmt::format("set{}", number);
    control::SetSpec set;
    set.name = std::move(name);
    set.sources.push_back(text);
    return set;
}

void print_packet(const packets::CapturedPacket& packet, const kernel::Replayed& replayed,
                  const kernel::TableInForce& table) {
    nlohmann::ordered_json hits = nlohmann::ordered_json::array();
    for (const kernel::SetInForce& set : table.sets)
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
    print_out("{}\n", json_text(line, json_one_line));
}

void print_totals(const control::ReplayTotals& totals, const kernel::TableInForce& table) {
    const auto row = [&totals](const std::string& name, std::uint64_t packets) {
        print_out("{:<32} {:>14} {:>7.2f}%\n", name, format_count(packets),
                  totals.packets == 0
                      ? 0.0
                      : 100 * static_cast<double>(packets) / static_cast<double>(totals.packets));
    };
    row("packets", totals.packets);
    row("passed", totals.passed);
    row("dropped", totals.dropped);
    if (totals.redirected > 0) row("redirected", totals.redirected);
    for (const kernel::SetInForce& set : table.sets)
        row(fmt::format("set {} ({})", set.name, describe_action(control::action_of(set))),
            totals.hits[set.slot]);
    row(fmt::format("by default ({})", action_name(table.default_action)), totals.by_default);
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++)
        if (totals.outcomes[i] > 0) row(outcome_row(i), totals.outcomes[i]);
    print_out("{} on the wire\n", format_bytes(totals.bytes));
}

Result<Exit> run_replay(const ReplayArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const sieve_action default_action,
                 parse_pass_or_drop("--default", arguments.default_action));
    control::TableSpec table;
    table.default_action = default_action;
    SIEVE_ASSIGN(table.unreadable, parse_pass_or_drop("--unreadable", arguments.unreadable));
    SIEVE_ASSIGN(const control::HookName hook, parse_hook({}, arguments.hook));
    table.point = hook.point.value_or(kernel::HookPoint::xdp);
    for (const std::string& text : arguments.sets) {
        SIEVE_ASSIGN(control::SetSpec set, parse_replay_set(text, table.sets.size() + 1, context));
        table.sets.push_back(std::move(set));
    }
    SIEVE_ASSIGN(const Input captured, Input::of(arguments.capture));
    SIEVE_ASSIGN(std::vector<control::SetInputs> inputs, control::find_inputs(table.sets, &captured));
    SIEVE_ASSIGN(packets::Capture capture, packets::Capture::open(arguments.capture));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const std::unique_ptr<control::Replayer> replayer,
                 control::start_replay(kernel, table, std::move(inputs), observer(context)));
    if (std::any_of(table.sets.begin(), table.sets.end(), [](const control::SetSpec& set) {
            return set.action && set.action->action == SIEVE_ACTION_LIMIT;
        }))
        remark(context, "packets meet a limit at the pace of this replay, not of their times in the capture");
    control::ReplayTotals totals;
    while (output_error() == 0) {
        SIEVE_ASSIGN(const std::optional<packets::CapturedPacket> packet, capture.next());
        if (!packet) break;
        SIEVE_ASSIGN(const kernel::Replayed replayed, replayer->run(packet->bytes));
        totals.add(replayed, packet->length);
        if (context.json) print_packet(*packet, replayed, replayer->table());
    }
    if (!context.json) print_totals(totals, replayer->table());
    return Exit::done;
}

} // namespace

void add_replay(CLI::App& app, Context& context) {
    add_command(
        app, context, "replay", "run a capture through the program in the kernel, without an interface",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<ReplayArguments>();
            command
                .add("SET", arguments->sets,
                     "IMAGE or FEED, or NAME=IMAGE|FEED with an action as `load` takes it, asked in "
                     "this order")
                .required();
            command.add("--pcap", arguments->capture, "the capture, pcap or pcapng; - is standard input")
                .called("FILE")
                .required();
            add_hook(command, arguments->hook, "whose program is run; xdp if not given");
            command
                .add("--default", arguments->default_action,
                     "what becomes of packets that no set decides: pass or drop")
                .called("pass|drop")
                .show_default();
            command.add("--unreadable", arguments->unreadable, unreadable_help)
                .called("drop|pass")
                .show_default();
            return [arguments, &context] { return run_replay(*arguments, context); };
        });
}

} // namespace sieve::cli
