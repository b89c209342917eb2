// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve: builds filters out of feeds and steers the XDP program that asks them.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "libsieve/util/shortage.hpp"
#include "libsieve/util/version.hpp"
#include "xdp-sieve/verb.hpp"

namespace {

constexpr char out_of_memory[] =
    "xdp-sieve: out of memory: the set is too large for this machine, or for a limit (`ulimit`)\n";

// oneTBB's workers start further workers, and where a thread cannot be had they throw what nobody can catch.
// All parallel work comes before a command changes anything, so that it may end there.
[[noreturn]] void end_without_memory() {
    try {
        if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    } catch (const std::exception& error) {
        if (sieve::is_shortage(error)) {
            (void)!::write(STDERR_FILENO, out_of_memory, sizeof(out_of_memory) - 1);
            ::_exit(static_cast<int>(sieve::Exit::bad_input));
        }
        fmt::print(stderr, "xdp-sieve: internal error, please report it: {}\n", error.what());
    } catch (...) {
    }
    std::abort();
}

} // namespace

int main(int argc, char** argv) try {
    std::set_terminate(end_without_memory);
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
    sieve::cli::add_kinds(app, context);

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
} catch (const std::exception& error) {
    if (sieve::is_shortage(error)) {
        std::fputs(out_of_memory, stderr);
        return static_cast<int>(sieve::Exit::bad_input);
    }
    fmt::print(stderr, "xdp-sieve: internal error, please report it: {}\n", error.what());
    return static_cast<int>(sieve::Exit::kernel_refused);
}
