// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads an answer of CrowdSec's local API: {"new": [decision...], "deleted": [decision...]}.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/live/claim.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service::live {

// Which decisions count. Names are compared without regard to case.
struct DecisionFilter {
    std::vector<std::string> types{"ban"};
    std::vector<std::string> scopes{"Ip", "Range"};
    std::vector<std::string> origins{}; // none: all
};

struct DecisionLimits {
    std::uint64_t bytes = std::uint64_t{1} << 30;
    std::uint64_t decisions = 10'000'000;
};

struct Decisions {
    std::vector<Claim> added; // those that have ended already are left out
    std::vector<Claim> deleted;
    std::uint64_t ignored = 0; // of another scope, type or origin
    std::string first_ignored; // "scope Country", for a remark; empty: none
};

// A duration as Go prints it: "3h59m2.5s", "-3h2m1.5s", "1m0.5s", "250ms", "0s". Nothing for any other text,
// and for more than about 290 years, Go's limit.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_go_duration(std::string_view text);

// An address or a prefix as a decision names it. IPv4-mapped addresses are IPv4 addresses. bad_input for
// anything else, for bits beyond the prefix's length, and for a prefix of length zero.
[[nodiscard]] Result<Prefix> parse_decision_value(std::string_view value, bool range);

// Reads an answer that came at `now`. bad_input for anything but such an answer: the message names the list
// and the number of the decision. What decisions have besides the members that count is skipped, nested at
// most 16 deep.
[[nodiscard]] Result<Decisions> parse_decisions(std::string_view text, const DecisionFilter& filter, Time now,
                                                const DecisionLimits& limits = {});

} // namespace sieve::service::live
