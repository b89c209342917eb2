// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a command takes as arguments. CLI11 does the work, behind this: its header alone takes longer to
// compile than all else in a command. Whole numbers may be written as 1e6.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace sieve::cli {

// One option or positional argument, to be refined.
class Argument {
  public:
    explicit Argument(CLI::Option* option) : option_(option) {}

    Argument required();
    // The value must lie there, ends included.
    Argument between(int least, int most);
    // The value must be a number above 0.
    Argument positive();
    // The help shows the value that the variable has now.
    Argument show_default();
    // What the help calls the value.
    Argument called(const std::string& value);
    // A list may be given as one word, separated by this.
    Argument separated_by(char separator);
    // The value may be left out; `name` is what the help calls it. The variable is a list.
    Argument optional_value(const std::string& name);
    // Only with that other one.
    Argument only_with(const Argument& other);

    [[nodiscard]] bool given() const;

  private:
    CLI::Option* option_;
};

class Arguments {
  public:
    explicit Arguments(CLI::App* app) : app_(app) {}

    // An option such as "-o,--output", or a positional argument such as "FEED", and the variable that it
    // sets. A type that arguments.cpp does not name fails to link.
    template <class T>
    Argument add(const std::string& names, T& into, const std::string& description);

    // An option without a value.
    Argument add_flag(const std::string& names, bool& into, const std::string& description);

    // Options of which at most one, or just one, may be given.
    Arguments add_at_most_one(const std::string& name, const std::string& description);
    Arguments add_one(const std::string& name, const std::string& description);

  private:
    CLI::App* app_;
};

} // namespace sieve::cli
