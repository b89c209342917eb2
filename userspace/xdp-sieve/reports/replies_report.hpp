// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How the command line takes and describes replies: what answers flows that this host began.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "front-end/console/arguments.hpp"
#include "libsieve/control/access/kernel.hpp"

namespace sieve::cli {

// `--replies` and `--max-flows`.
class RepliesArguments {
  public:
    void add_to(Arguments& command);
    void add_max_flows_to(Arguments& command);
    // Errors name the option.
    [[nodiscard]] Result<std::optional<sieve_action>> parse() const;
    [[nodiscard]] Result<control::WantedFlows> flows() const;

  private:
    std::string replies_;
    std::string max_flows_;
};

// "replies pass: notes are taken of 1,048,576 flows (16 MiB), and 12 that existed were noted"
std::string describe(const control::RepliesMade& made);
nlohmann::json to_json(const control::RepliesMade& made);

// The lines of `status` below the hook's, each with its end; and the same as JSON.
std::string describe(const control::RepliesState& state, const sieve_counter& replied);
nlohmann::json to_json(const control::RepliesState& state);

} // namespace sieve::cli
