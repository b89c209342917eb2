// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/program.hpp"

#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "front-end/console/output.hpp"
#include "libsieve/util/results/out_of_memory.hpp"
#include "libsieve/util/text/version.hpp"

namespace sieve::cli {

Program::Program(const std::string& name, const std::string& description)
    : app_(std::make_unique<CLI::App>(description)) {
    app_->name(name);
    app_->set_version_flag("--version", fmt::format("{} {}", name, version));
}

Program::~Program() = default;

std::optional<Exit> Program::parse(int argc, char** argv) {
    try {
        app_->parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::CallForHelp&) {
        print_out("{}", app_->help());
        return Exit::done;
    } catch (const CLI::CallForVersion& error) {
        print_out("{}\n", error.what());
        return Exit::done;
    } catch (const CLI::ParseError& error) {
        print_error("{}: {}; see `{} --help`\n", app_->get_name(), error.what(), app_->get_name());
        return Exit::usage;
    }
}

int run_main(const std::string& name, const std::string& too_large, const std::function<Exit()>& work) {
    prepare_streams();
    try {
        const Exit exit = work();
        if (flush_output()) return static_cast<int>(exit);
        print_error("{}: standard output could not be written\n", name);
        return static_cast<int>(Exit::incomplete);
    } catch (const std::exception& error) {
        const bool shortage = is_out_of_memory(error);
        print_error("{}: {}\n", name,
                    shortage ? fmt::format("out of memory: {} too large for this machine", too_large)
                             : fmt::format("internal error, please report it: {}", error.what()));
        return static_cast<int>(shortage ? Exit::bad_input : Exit::kernel_refused);
    }
}

} // namespace sieve::cli
