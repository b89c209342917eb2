// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/program.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "front-end/console/output.hpp"
#include "libsieve/util/results/out_of_memory.hpp"
#include "libsieve/util/text/version.hpp"

namespace sieve::cli {

namespace {

ArgumentDescription describe(const CLI::Option& option) {
    ArgumentDescription argument{.long_names = option.get_lnames(),
                                 .short_names = option.get_snames(),
                                 .positional = option.get_positional(),
                                 .help = option.get_description(),
                                 .most_values =
                                     static_cast<std::size_t>(std::max(0, option.get_items_expected_max()))};
    // CLI11 appends what it checks.
    const std::string type = option.get_type_name();
    argument.value = argument.positional ? option.get_single_name() : type.substr(0, type.find(':'));
    return argument;
}

} // namespace

CommandDescription describe(const CLI::App& app) {
    CommandDescription command{.name = app.get_name(), .help = app.get_description()};
    for (const CLI::Option* option : app.get_options()) command.arguments.push_back(describe(*option));
    for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
        CommandDescription inner = describe(*one);
        if (inner.name.empty()) // a group of options
            std::ranges::move(inner.arguments, std::back_inserter(command.arguments));
        else
            command.commands.push_back(std::move(inner));
    }
    return command;
}

Program::Program(const std::string& name, const std::string& description)
    : app_(std::make_unique<CLI::App>(description)) {
    app_->name(name);
    app_->set_version_flag("--version", fmt::format("{} {}", name, version));
}

Program::~Program() = default;

void Program::require_command() {
    app_->require_subcommand(1);
    app_->get_formatter()->label("SUBCOMMAND", "COMMAND");
}

std::vector<std::string> Program::command_names() const {
    std::vector<std::string> names;
    for (const CLI::App* command : std::as_const(*app_).get_subcommands({}))
        names.push_back(command->get_name());
    return names;
}

std::string Program::chosen_command() const {
    const auto chosen = app_->get_subcommands();
    return chosen.empty() ? std::string() : chosen.front()->get_name();
}

std::vector<std::string> Program::chosen_arguments() const {
    std::vector<std::string> arguments;
    for (const CLI::App* command : app_->get_subcommands())
        for (const CLI::Option* option : std::as_const(*command).get_options())
            if (option->get_positional())
                arguments.insert(arguments.end(), option->results().begin(), option->results().end());
    return arguments;
}

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
        const std::string command = chosen_command();
        const bool missing = command.empty() && app_->get_require_subcommand_min() > 0 &&
                             error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
        // The help of the command that was being parsed.
        print_error("{}: {}; see `{}{}{} --help`\n", app_->get_name(),
                    missing ? "expected a command" : error.what(), app_->get_name(),
                    command.empty() ? "" : " ", command);
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
