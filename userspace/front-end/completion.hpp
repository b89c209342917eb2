// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Completion of a command line in a shell. The candidates come from the description of the command line that
// also parses it, so they cannot go stale. The scripts in completions/ pass them on to bash, zsh and fish.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "front-end/console/program.hpp"

namespace sieve::cli {

struct CompletionWord {
    std::string text; // the whole word; the word may go on if it ends in = , : or /
    std::string description;
};

// What candidates this machine adds.
struct Surroundings {
    // The names of all interfaces.
    std::function<std::vector<std::string>()> interfaces;
    // The names of the sets in force on the interface, at this hook, or at all hooks if it is empty.
    std::function<std::vector<std::string>(const std::string& interface, const std::string& hook)> sets;
};

// The real ones. A user who may not read the kernel's state sees no sets.
[[nodiscard]] Surroundings this_machine();

// What may stand for the last of `words`, which follow the program's name. The last word may be empty. Files
// are listed relative to the working directory.
[[nodiscard]] std::vector<CompletionWord>
complete(const CommandDescription& program, std::vector<std::string> words, const Surroundings& surroundings);

// What completion knows of a value by the name that the help calls it: IFACE, FILE, "pass|drop", NUMBER.
// Tests check that it knows every name.
[[nodiscard]] bool is_known_value(std::string_view name);

// `xdp-sieve complete [--] WORD...`: prints a line for each candidate: the text, and after a tab the
// description.
void print_candidates(const CommandDescription& program, std::vector<std::string> words);

} // namespace sieve::cli
