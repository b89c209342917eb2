// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A command's arguments. CLI11 does the work behind this interface, because its header alone takes longer to
// compile than the rest of a command. Whole numbers may be written as 1e6.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace sieve::cli {

// One option or positional argument, to which more rules can be added.
class Argument {
  public:
    explicit Argument(CLI::Option* option) : option_(option) {}

    Argument required();
    // The value must lie between these bounds, which are allowed.
    Argument between(std::int64_t least, std::int64_t most);
    // The value must be a number above 0.
    Argument positive();
    // The help shows the variable's present value as the default.
    Argument show_default();
    // Sets the help's name for the value.
    Argument called(const std::string& value);
    // Allows a list as one word whose parts `separator` separates.
    Argument separated_by(char separator);
    // Allows the argument without its value. `name` is the help's name for the value. The variable is a list.
    Argument optional_value(const std::string& name);
    // Allows an empty text.
    Argument may_be_empty();
    // Changes what was given before it is taken.
    Argument read_as(std::function<std::string(std::string text)> change);
    // Allows the argument only together with `other`.
    Argument only_with(const Argument& other);

    [[nodiscard]] bool given() const;

  private:
    CLI::Option* option_;
};

class Arguments {
  public:
    explicit Arguments(CLI::App* app) : app_(app) {}

    // Adds an option such as "-o,--output", or a positional argument such as "FEED", which sets the variable.
    // An option of a list may be given several times, with one value each. A single text must not be empty: a
    // script's variable is not set then, and to leave the argument out may mean more, such as all interfaces.
    // A type that arguments.cpp does not instantiate fails to link.
    template <class T>
    Argument add(const std::string& names, T& into, const std::string& description);

    // An option without a value.
    Argument add_flag(const std::string& names, bool& into, const std::string& description);

    // A group of options of which at most one may be given.
    Arguments add_at_most_one(const std::string& name, const std::string& description);

    // A command with arguments of its own, which may also be followed by the program's.
    Arguments add_command(const std::string& name, const std::string& description);
    // Of a command: called when all arguments have been read, if the command is among them.
    void when_chosen(std::function<void()> work);
    // Whether it has an option of this name, such as "--force".
    [[nodiscard]] bool has(const std::string& option) const;

  private:
    CLI::App* app_;
};

} // namespace sieve::cli
