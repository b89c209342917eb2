// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/program.hpp"

#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "front-end/completion.hpp"
#include "front-end/console/output.hpp"
#include "libsieve/service/sandbox/child_main.hpp"
#include "libsieve/util/results/out_of_memory.hpp"
#include "libsieve/util/system/descriptor_limit.hpp"
#include "xdp-sieve/meant_command.hpp"
#include "xdp-sieve/unknown_command.hpp"

namespace sieve::cli {

namespace {

bool is_interface(const std::string& name) {
    return ::if_nametoindex(name.c_str()) != 0;
}

// Says what is wrong with the command's name, which CLI11 does not. Empty if the name is right. The options
// in front of the command take no values.
std::string fault_of_command(const Program& program, const std::vector<std::string>& words) {
    const std::vector<std::string> names = program.command_names();
    for (const std::string& word : words) {
        if (word.starts_with('-') && word != "-V") continue;
        if (std::ranges::find(names, word) == names.end())
            if (std::string meant = meant_by(words, names, is_interface); !meant.empty()) return meant;
        return std::find(names.begin(), names.end(), word) != names.end() ? std::string()
                                                                          : unknown_command(word, names);
    }
    return {};
}

// After a failure: the command that was probably meant.
void print_what_was_meant(const Program& program, const std::vector<std::string>& words) {
    const std::string command = program.chosen_command();
    if (command.empty()) return;
    const std::string meant = meant_instead(command, program.chosen_arguments(), words, is_interface);
    if (!meant.empty()) print_error("xdp-sieve: {}\n", meant);
}

// The first word that is no option: the options of all commands take no values. Empty if there is none.
std::string_view named_command(int argc, char** argv) {
    char** const named =
        std::find_if(argv + std::min(argc, 1), argv + argc, [](const char* word) { return *word != '-'; });
    return named != argv + argc ? *named : "";
}

// Runs the command. The context then holds its exit code.
void run(int argc, char** argv, std::span<const Command> more, Context& context) {
    Program program = xdp_sieve();
    define_command_line(program, context, named_command(argc, argv), more);

    // What the shells' completion scripts run. No person types it, so the help does not show it.
    if (argc > 1 && std::string_view(argv[1]) == "complete") {
        print_candidates(describe(program.app()), {argv + 2, argv + argc});
        return;
    }
    if (const std::string fault = fault_of_command(program, {argv + 1, argv + argc}); !fault.empty()) {
        print_error("xdp-sieve: {}\n", fault);
        context.exit = Exit::usage;
        return;
    }
    if (const auto exit = program.parse(argc, argv)) context.exit = *exit;
    if (context.exit != Exit::done && !context.changed)
        print_what_was_meant(program, {argv + 1, argv + argc});
}

// An exception is a bug of ours or a shortage of memory. The context knows whether something was changed
// before.
Exit after_exception(const Context& context, const char* text) {
    // Do not format: formatting takes memory.
    write_text(stderr, "xdp-sieve: ");
    write_text(stderr, text);
    write_text(stderr, context.changed ? "; the change was made\n" : "\n");
    return context.changed ? Exit::incomplete : Exit::bad_input;
}

constexpr char out_of_memory[] =
    "out of memory: the set is too large for this machine, or for a limit (`ulimit`)";

// oneTBB's worker threads start further workers. If a thread cannot be started, a worker throws, and nobody
// can catch that. The process may end here, since all parallel work comes before a command changes anything.
[[noreturn]] void end_without_memory() {
    try {
        if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    } catch (const std::exception& error) {
        const bool shortage = is_out_of_memory(error);
        write_text(stderr, "xdp-sieve: ");
        write_text(stderr, shortage ? out_of_memory : "internal error, please report it: ");
        if (!shortage) write_text(stderr, error.what());
        write_text(stderr, "\n");
        if (shortage) std::_Exit(static_cast<int>(Exit::bad_input));
    } catch (...) {
    }
    std::abort();
}

// Reports whether the output was written, and returns the exit code.
Exit finish(const Context& context) {
    if (flush_output()) return context.exit;
    const int error = output_error();
    // A reader that closed the pipe, such as head, has seen enough. It needs no message.
    if (error != EPIPE)
        print_error("xdp-sieve: standard output could not be written: {}{}\n",
                    error == 0 ? "unknown error" : errno_text(error),
                    context.changed ? "; the change was made" : "");
    return context.exit == Exit::done || context.exit == Exit::no ? Exit::incomplete : context.exit;
}

} // namespace

int run_program(int argc, char** argv, std::span<const Command> more) {
    // A child that reads lists, or works for `apply`, is this program, executed anew.
    if (const auto done = service::run_as_child(argc, argv)) return *done;
    raise_descriptor_limit();
    std::set_terminate(end_without_memory);
    prepare_streams();
    Context context;
    try {
        run(argc, argv, more, context);
        return static_cast<int>(finish(context));
    } catch (const std::exception& error) {
        if (is_out_of_memory(error)) return static_cast<int>(after_exception(context, out_of_memory));
        const std::string text = std::string("internal error, please report it: ") + error.what();
        const Exit exit = after_exception(context, text.c_str());
        return static_cast<int>(exit == Exit::bad_input ? Exit::kernel_refused : exit);
    }
}

} // namespace sieve::cli
