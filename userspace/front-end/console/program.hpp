// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A program: its arguments, its commands if it has some, and its way from main() to an exit code.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "front-end/console/arguments.hpp"
#include "front-end/console/exit_code.hpp"

namespace sieve::cli {

// An option or a positional argument, as its help has it.
struct ArgumentDescription {
    std::vector<std::string> long_names{};  // without dashes
    std::vector<std::string> short_names{}; // likewise
    bool positional = false;
    std::string value{}; // what the help calls its value
    std::string help{};
    std::size_t most_values = 0;
};
struct CommandDescription {
    std::string name{};
    std::string help{};
    std::vector<ArgumentDescription> arguments{}; // those of its groups included
    std::vector<CommandDescription> commands{};
};
[[nodiscard]] CommandDescription describe(const CLI::App& app);

class Program {
  public:
    Program(const std::string& name, const std::string& description);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    [[nodiscard]] Arguments arguments() { return Arguments(app_.get()); }
    // For commands (add_command()) and describe().
    [[nodiscard]] CLI::App& app() { return *app_; }
    [[nodiscard]] const CLI::App& app() const { return *app_; }

    // From now on, one of the commands must be named.
    void require_command();
    [[nodiscard]] std::vector<std::string> command_names() const;

    // Sets the variables of the arguments, and runs the command that they name. Prints help, the version, or
    // what is wrong, and returns the exit code then.
    [[nodiscard]] std::optional<Exit> parse(int argc, char** argv);

    // After parse(): the command that was named. Empty if none was.
    [[nodiscard]] std::string chosen_command() const;
    // Its arguments without its options.
    [[nodiscard]] std::vector<std::string> chosen_arguments() const;

  private:
    std::unique_ptr<CLI::App> app_;
};

// What main() returns: the exit code of `work`, or that of an exception, or that of output that could not be
// written. `too_large`: what is too large if there is not enough memory, such as "the sets are".
[[nodiscard]] int run_main(const std::string& name, const std::string& too_large,
                           const std::function<Exit()>& work);

} // namespace sieve::cli
