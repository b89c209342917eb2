// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The options that protect an operator from his own change, the same for every command that makes one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "front-end/console/arguments.hpp"
#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/util/results/result.hpp"
#include "xdp-sieve/arguments/context.hpp"

namespace sieve::cli {

class SafetyArguments {
  public:
    void add_to(Arguments& command);
    // The options about the host's addresses alone, for a command whose changes have no probation.
    void add_questions_to(Arguments& command);
    // The probation alone, for a command that asks about the host's addresses by other rules.
    void add_confirm_to(Arguments& command);

    // What the arguments ask for; it may refer to this object and to the context. Errors: invalid_request for
    // a port; those of read_protect_list().
    [[nodiscard]] Result<control::Safety> safety(const Context& context);

    // Tells the operator what becomes of the change that was just made on probation. "" for `interface`: on
    // several interfaces.
    void remark_on(const std::string& interface, const Context& context) const;

  private:
    std::optional<std::uint32_t> confirm_within_; // seconds
    bool allow_lockout_ = false;
    std::optional<std::string> protect_; // a file
    std::optional<std::string> ports_;   // a comma list
    std::unique_ptr<control::HostAddresses> host_;
};

} // namespace sieve::cli
