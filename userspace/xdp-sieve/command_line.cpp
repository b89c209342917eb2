// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/command_line.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "xdp-sieve/arguments/command.hpp"

namespace sieve::cli {

namespace {

constexpr Command commands[] = {
    {"build", add_build},     {"query", add_query},   {"explain", add_explain}, {"diff", add_diff},
    {"inspect", add_inspect}, {"load", add_load},     {"swap", add_swap},       {"join", add_join},
    {"set", add_set},         {"add", add_add},       {"default", add_default}, {"replies", add_replies},
    {"confirm", add_confirm}, {"insert", add_insert}, {"delete", add_delete},   {"expire", add_expire},
    {"list", add_list},       {"remove", add_remove}, {"unload", add_unload},   {"pause", add_pause},
    {"resume", add_resume},   {"accept", add_accept}, {"ban", add_ban},         {"unban", add_unban},
    {"banned", add_banned},   {"apply", add_apply},   {"config", add_config},   {"status", add_status},
    {"stats", add_stats},     {"events", add_events}, {"top", add_top},         {"replay", add_replay},
    {"plan", add_plan},       {"kinds", add_kinds},
};

} // namespace

bool is_common_command(std::string_view name) {
    return std::ranges::find(commands, name, &Command::name) != std::end(commands);
}

Program xdp_sieve() {
    return {"xdp-sieve",
            "Packet filter for very large lists: 10^4 to 10^8 keys in a few bits each.\n"
            "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 bad input, 4 the kernel refused, 5 done, "
            "but a later step failed; 2 to 4 changed nothing."};
}

void define_command_line(Program& program, Context& context, std::string_view only,
                         std::span<const Command> more) {
    program.require_command();
    Arguments all = program.arguments();
    all.add_flag("--json", context.json, "print JSON, for machines");
    all.add_flag("-q,--quiet", context.quiet, "print errors only, and what was asked for");
    all.add_flag("-v,--verbose", context.verbose, "print what libbpf and the builder say on the way");
    all.add_flag("--no-sandbox", context.no_sandbox,
                 "for debugging: read lists in this process, not in a child without privileges");
    const bool is_named =
        is_common_command(only) || std::ranges::find(more, only, &Command::name) != more.end();
    for (const std::span<const Command> some : {std::span<const Command>(commands), more})
        for (const Command& one : some)
            if (!is_named || one.name == only) one.add(program.app(), context);
}

} // namespace sieve::cli
