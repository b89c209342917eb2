// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the configuration says of an interface's protection, as control asks it.
#pragma once

#include <string>
#include <vector>

#include "libsieve/control/spec/safety.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// What protects this entry's tables. They are asked about the host's own addresses unless the entry does
// without, and about the addresses that the entry lists.
class EntrySafety final : public HostAddresses {
  public:
    EntrySafety(const Configuration& configuration, const InterfaceConfiguration& entry,
                const control::Safety& safety);
    EntrySafety(const EntrySafety&) = delete;
    EntrySafety& operator=(const EntrySafety&) = delete;

    [[nodiscard]] const control::Safety& get() const { return safety_; }
    Result<std::vector<HostAddress>> read() override;

  private:
    const InterfaceConfiguration& entry_;
    HostAddresses* host_;
    control::Safety safety_;
};

// What a person reads of control's refusal (ErrorKind::lockout) of a change of this entry's table: also what
// to change in the configuration. Null: the configuration has no entry for the hook.
[[nodiscard]] std::string lockout_text(const Error& refused, const InterfaceConfiguration* entry);

} // namespace sieve::service
