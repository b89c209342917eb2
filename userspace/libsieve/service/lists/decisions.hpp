// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads an answer of CrowdSec's local API: {"new": [decision...], "deleted": [decision...]}.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// Which decisions count. Names are compared without regard to case.
struct DecisionFilter {
    std::vector<std::string> types{"ban"};
    std::vector<std::string> scopes{"Ip", "Range"};
    std::vector<std::string> origins{}; // none: all
};

// Origins that a code tells apart, and bytes of their names. Others have no code, and longer names are cut.
inline constexpr std::size_t most_origins = ban_origin - 1;
inline constexpr std::size_t longest_origin = 63;

struct DecisionLimits {
    std::uint64_t bytes = std::uint64_t{1} << 30;
    std::uint64_t decisions = 10'000'000;
};

// The entries' origins are codes of their own answer: the position of the name in `origins`, from 1 on.
struct Decisions {
    std::vector<TimedEntry> added{}; // those that have ended already are left out
    std::vector<TimedEntry> deleted{};
    std::vector<std::string> origins{}; // printable, each once, at most most_origins of them
    std::uint64_t ignored = 0;          // of another scope, type or origin, or simulated
    std::string first_ignored{};        // "scope Country", for a remark
    std::uint64_t unusable = 0;         // of the right sort, but with a value that no list should hold
    std::string first_unusable{};       // "decision 7: "0.0.0.0/0" is ..., expected ..."
};

// A duration as Go prints it: "3h59m2.5s", "-3h2m1.5s", "1m0.5s", "250ms", "0s". Nothing for any other text,
// and for more than about 290 years, Go's limit.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_go_duration(std::string_view text);

// An address or a prefix as a decision names it. IPv4-mapped addresses are IPv4 addresses. Bits beyond a
// prefix's length are cut off, as CrowdSec itself does. bad_input for anything else, for a prefix that is to
// be an address, and for a prefix that has all addresses of a family.
[[nodiscard]] Result<Prefix> parse_decision_value(std::string_view value, bool range);

// Reads an answer that came at `now`. bad_input for anything but such an answer: the message names the list
// and the number of the decision. A decision whose value is unusable is left out and counted: one mistyped
// decision must not keep all others out. Members besides those that count are skipped, nested at most 16
// deep.
[[nodiscard]] Result<Decisions> parse_decisions(std::string_view text, const DecisionFilter& filter, Time now,
                                                const DecisionLimits& limits = {});

} // namespace sieve::service::live
