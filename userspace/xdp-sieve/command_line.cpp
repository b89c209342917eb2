// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/command_line.hpp"

#include <string>

#include "libsieve/util/version.hpp"
#include "xdp-sieve/command.hpp"

namespace sieve::cli {

void define_command_line(CLI::App& app, Context& context) {
    app.description(
        "Packet filter for very large lists: 10^4 to 10^8 keys in a few bits each.\n"
        "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 bad input, 4 the kernel refused, 5 done, "
        "but a later step failed; 2 to 4 changed nothing.");
    app.name("xdp-sieve");
    app.set_version_flag("--version", std::string("xdp-sieve ") + version);
    app.require_subcommand(1);
    app.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app.add_flag("--json", context.json, "print JSON, for machines");
    app.add_flag("-q,--quiet", context.quiet, "print errors only, and what was asked for");
    app.add_flag("-v,--verbose", context.verbose, "print what libbpf and the builder say on the way");
    app.add_flag("--no-sandbox", context.no_sandbox,
                 "for debugging: read lists in this process, not in a child without privileges");
    add_build(app, context);
    add_query(app, context);
    add_explain(app, context);
    add_diff(app, context);
    add_inspect(app, context);
    add_load(app, context);
    add_swap(app, context);
    add_join(app, context);
    add_set(app, context);
    add_add(app, context);
    add_default(app, context);
    add_replies(app, context);
    add_confirm(app, context);
    add_insert(app, context);
    add_delete(app, context);
    add_expire(app, context);
    add_list(app, context);
    add_remove(app, context);
    add_unload(app, context);
    add_pause(app, context);
    add_resume(app, context);
    add_accept(app, context);
    add_ban(app, context);
    add_unban(app, context);
    add_banned(app, context);
    add_apply(app, context);
    add_config(app, context);
    add_publish(app, context);
    add_fleet(app, context);
    add_status(app, context);
    add_stats(app, context);
    add_events(app, context);
    add_top(app, context);
    add_replay(app, context);
    add_bench(app, context);
    add_plan(app, context);
    add_kinds(app, context);
}

} // namespace sieve::cli
