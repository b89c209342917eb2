// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys that leave a set in place: whether this host can do without them.
#pragma once

#include <functional>
#include <string>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// Error lockout if the table of a hook would drop, without these keys of the set, what this host lives by.
// The message says what to change in the configuration. `leaving` tells the keys, and is asked only where a
// set that lets packets pass loses them.
[[nodiscard]] Status refuse_removal(control::Kernel& kernel, const Configuration& configuration,
                                    const std::string& set, const std::function<KeySet()>& leaving,
                                    HostAddresses& host);

} // namespace sieve::service::live
