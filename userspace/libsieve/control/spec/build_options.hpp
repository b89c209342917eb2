// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How a feed becomes a filter, in words. There is one list of options: `build` takes them as --NAME, a set of
// `load`, `swap` and `replay` as ,NAME=VALUE, and a set of the configuration as NAME = VALUE.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// What an option says that is not set.
struct Unset {
    const char* meaning;
};
// What an option is set to. Nothing: it is not set, or says nothing because of other options.
using BuildOptionValue = std::variant<std::monostate, Unset, bool, std::uint64_t, double, std::string>;

struct BuildOption {
    const char* name;
    const char* value; // what the help calls the value; null for an option without a value
    std::string help;
    // Sets the option. An error says what was expected, without the option's name.
    Status (*set)(FeedSpec& feed, const std::string& text);
    // What set() has left, or the default.
    BuildOptionValue (*value_of)(const FeedSpec& feed);
    bool decides = true; // which filter is built of a list
};

// In the order in which the help shows them.
[[nodiscard]] std::span<const BuildOption> build_options();

// Sets the option and records that it was chosen. An error begins with `as_given`, such as "--fpr x".
[[nodiscard]] Status set_build_option(const BuildOption& option, const std::string& text,
                                      const std::string& as_given, FeedSpec& feed);

} // namespace sieve::control
