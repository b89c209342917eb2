// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How the command line describes packets that the parser cannot read to their end.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "libsieve/kernel/maps/stats.hpp"

namespace sieve::cli {

// The help of `--unreadable`.
inline constexpr char unreadable_help[] = "what becomes of packets that cannot be read to their end, such as "
                                          "those with cut-off headers: drop or pass";

// The label of the table row that counts packets of an enum sieve_outcome: "parsed: arp", "unreadable:
// short".
std::string outcome_row(std::uint32_t outcome);

// The member "unreadable" of --json output: what becomes of such packets, and their number by reason.
nlohmann::json unreadable_json(sieve_action action, const kernel::Stats& stats);

// "3 packets were unreadable: 2 short, 1 malformed"; nothing if there were none.
std::string describe_unreadable(const kernel::Stats& stats);

} // namespace sieve::cli
