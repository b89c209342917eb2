// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The addresses that this host lives by, by the names that the service uses.
#pragma once

#include "libsieve/control/safety/host_addresses.hpp"

namespace sieve::service {

using control::HostAddress;
using control::HostAddresses;
using control::RealHostAddresses;

} // namespace sieve::service
