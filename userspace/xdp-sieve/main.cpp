// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve: builds filters out of feeds and steers the XDP program that asks them.
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "libsieve/util/version.hpp"
#include "xdp-sieve/verb.hpp"

int main(int argc, char** argv) try {
    sieve::cli::Context context;
    CLI::App app{"Packet filter at XDP: 10^4 to 10^8 keys in a few bits each.\n"
                 "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 bad input, 4 the kernel refused."};
    app.name("xdp-sieve");
    app.set_version_flag("--version", std::string("xdp-sieve ") + sieve::version);
    app.require_subcommand(1);
    app.add_flag("--json", context.json, "print JSON, for machines");
    app.add_flag("-q,--quiet", context.quiet, "print errors only, and what was asked for");
    app.add_flag("-v,--verbose", context.verbose, "print what libbpf and the builder say on the way");

    sieve::cli::add_build(app, context);
    sieve::cli::add_query(app, context);
    sieve::cli::add_inspect(app, context);
    sieve::cli::add_load(app, context);
    sieve::cli::add_swap(app, context);
    sieve::cli::add_insert(app, context);
    sieve::cli::add_delete(app, context);
    sieve::cli::add_remove(app, context);
    sieve::cli::add_unload(app, context);
    sieve::cli::add_status(app, context);
    sieve::cli::add_stats(app, context);
    sieve::cli::add_events(app, context);
    sieve::cli::add_top(app, context);
    sieve::cli::add_replay(app, context);
    sieve::cli::add_bench(app, context);
    sieve::cli::add_plan(app, context);

    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return fmt::format("xdp-sieve: {}; see `xdp-sieve --help`\n", error.what());
    });
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // CLI11 prints help and versions as "errors" of code 0; all others are usage.
        return app.exit(error) == 0 ? 0 : static_cast<int>(sieve::Exit::usage);
    }
    if (std::fflush(stdout) != 0) {
        fmt::print(stderr, "xdp-sieve: standard output could not be written\n");
        return static_cast<int>(sieve::Exit::bad_input);
    }
    return static_cast<int>(context.exit);
} catch (const std::bad_alloc&) {
    std::fputs("xdp-sieve: out of memory: the set is too large for this machine\n", stderr);
    return static_cast<int>(sieve::Exit::bad_input);
} catch (const std::exception& error) {
    fmt::print(stderr, "xdp-sieve: internal error, please report it: {}\n", error.what());
    return static_cast<int>(sieve::Exit::kernel_refused);
}
