// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/reports/replies_report.hpp"

#include <fmt/core.h>

#include "front-end/console/format.hpp"
#include "front-end/set_argument.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/util/text/number.hpp"
#include "xdp-sieve/reports/way_attached.hpp"

namespace sieve::cli {

void RepliesArguments::add_to(Arguments& command) {
    command
        .add("--replies", replies_,
             "what becomes of packets that would be dropped, if they answer what this host began; pass for a "
             "new default of drop, else drop, if not given")
        .called("pass|drop");
    add_max_flows_to(command);
}

void RepliesArguments::add_max_flows_to(Arguments& command) {
    command
        .add("--max-flows", max_flows_,
             "how many flows are remembered for replies, 24 bytes each; by the machine's memory if not given")
        .called("NUMBER");
}

Result<std::optional<sieve_action>> RepliesArguments::parse() const {
    if (replies_.empty()) return std::optional<sieve_action>();
    SIEVE_ASSIGN(const sieve_action action, parse_pass_or_drop("--replies", replies_));
    return std::optional(action);
}

Result<control::WantedFlows> RepliesArguments::flows() const {
    if (max_flows_.empty()) return control::WantedFlows{};
    const std::optional<std::uint64_t> flows = parse_whole(max_flows_);
    if (!flows || !control::is_flow_count(*flows))
        return invalid_request(
            fmt::format("--max-flows {}: expected {}", max_flows_, control::flow_counts()));
    return control::WantedFlows{.most = flows};
}

std::string describe(const control::RepliesMade& made) {
    const std::string seeded =
        !made.seeded ? std::string()
                     : fmt::format("; {} that existed {} noted", format_counted(*made.seeded, "flow"),
                                   *made.seeded == 1 ? "was" : "were");
    const char* const memory =
        made.replaced ? "a new flow memory, in place of one of another version whose notes are gone, holds"
        : made.memory_made ? "a new flow memory holds"
                           : "the flow memory in use holds";
    return fmt::format("replies pass: {} up to {} ({}){}", memory, format_counted(made.max_flows, "flow"),
                       format_bytes(made.bytes), seeded);
}

nlohmann::json to_json(const control::RepliesMade& made) {
    nlohmann::json out = {{"max_flows", made.max_flows},
                          {"bytes", made.bytes},
                          {"memory_made", made.memory_made},
                          {"memory_replaced", made.replaced}};
    out["seeded"] = made.seeded ? nlohmann::json(*made.seeded) : nlohmann::json();
    return out;
}

std::string describe(const control::RepliesState& state, const sieve_counter& replied) {
    std::string text;
    if (!state.noting)
        text +=
            "  the program that notes flows is missing: answers to new flows are dropped; `xdp-sieve replies "
            "IFACE pass` puts it back\n";
    if (!state.before.empty())
        text += fmt::format("  asked before the program that notes flows: {}\n",
                            kernel::filters_text(state.before));
    if (!state.memory) return text;
    text += fmt::format("  replies pass: {} so far; {} of at most {} remembered ({}), load {:.2f}{}\n",
                        format_counted(replied.packets, "packet"), format_counted(state.memory->used, "note"),
                        format_counted(state.memory->max_flows, "flow"), format_bytes(state.memory->bytes),
                        state.memory->load(),
                        state.memory->learning.count() > 0
                            ? fmt::format(", connections from before are learnt for {} s more",
                                          state.memory->learning.count())
                            : std::string());
    if (state.counts.refused > 0 || state.counts.evicted > 0)
        text += fmt::format("  {} found no room and {} made room for others: a higher --max-flows helps\n",
                            format_counted(state.counts.refused, "flow"), format_count(state.counts.evicted));
    else if (state.memory->load() >= kernel::flow_memory_warning_load)
        text += "  every flow has found room so far, and the memory fills up: a higher --max-flows helps\n";
    if (state.counts.lost > 0)
        text += fmt::format("  {} not noted, since another CPU was faster; its next packet tried again\n",
                            format_counted(state.counts.lost, "flow"));
    return text;
}

nlohmann::json to_json(const control::RepliesState& state) {
    nlohmann::json out = {{"noting", state.noting},          {"begun", state.counts.begun},
                          {"evicted", state.counts.evicted}, {"refused", state.counts.refused},
                          {"lost", state.counts.lost},       {"filters_before", filters_json(state.before)}};
    if (!state.memory) return out;
    out["max_flows"] = state.memory->max_flows;
    out["bytes"] = state.memory->bytes;
    out["entries"] = state.memory->entries;
    out["used"] = state.memory->used;
    out["established"] = state.memory->established;
    out["load"] = state.memory->load();
    out["learning_seconds"] = state.memory->learning.count();
    return out;
}

} // namespace sieve::cli
