// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How a feed becomes a filter, in words: one list of options. `build` takes them as --NAME, a set of `load`,
// `swap` and `replay` as ,NAME=VALUE, and a set of the configuration as NAME = VALUE.
#pragma once

#include <span>
#include <string>

#include "libsieve/control/set_spec.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

struct BuildOption {
    const char* name;
    const char* value; // what the help calls its value; nothing: the option takes none
    std::string help;
    // Sets the option; an error says what was expected, without the name.
    Status (*set)(FeedSpec& feed, const std::string& text);
};

// In the order in which the help shows them.
[[nodiscard]] std::span<const BuildOption> build_options();

// Sets the option and notes that it was chosen. `as_given` begins the error, as "--fpr x" does.
[[nodiscard]] Status set_build_option(const BuildOption& option, const std::string& text,
                                      const std::string& as_given, FeedSpec& feed);

} // namespace sieve::control
