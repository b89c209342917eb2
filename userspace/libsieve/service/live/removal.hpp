// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys and prefixes that leave the list of a live set: whether this host can do without them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// What leaves a set of one address. It is asked only where a set that lets packets pass loses something.
using FindLeaving = std::function<Result<Members>()>;

// Error lockout if a table in force would drop, without what leaves, what this host lives by.
using RefuseRemoval = std::function<Status(const FindLeaving& leaving)>;

// That of the tables of all hooks. The message says what to change in the configuration.
[[nodiscard]] Status refuse_removal(control::Kernel& kernel, const Configuration& configuration,
                                    const std::string& set, const FindLeaving& leaving, HostAddresses& host);

// A lockout as a guard's refusal; nothing: all that leaves may go, or nobody is asked (`ask` is null).
[[nodiscard]] Result<std::optional<Refusal>> guard_removal(const RefuseRemoval& ask, const std::string& set,
                                                           const FindLeaving& leaving);

} // namespace sieve::service::live
