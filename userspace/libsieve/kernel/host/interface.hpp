// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The interfaces of the caller's network namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sieve/policy.h>

#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

struct Interface {
    std::string name;
    std::uint32_t index = 0;
};

[[nodiscard]] Result<Interface> find_interface(const std::string& name);
[[nodiscard]] std::vector<Interface> all_interfaces();

// The interface's MTU; 0 if the kernel would not say.
[[nodiscard]] int interface_mtu(const Interface& interface);

// What the interface's packets begin with, by its hardware type (ARPHRD_*, linux/if_arp.h). An error for a
// type whose packets the parser could only guess at, and for a tun device without IFF_NO_PI.
[[nodiscard]] Result<sieve_link> interface_link(const Interface& interface);

// The same for a hardware type; nothing if it is not known.
[[nodiscard]] std::optional<sieve_link> link_of_hardware(unsigned type);

} // namespace sieve::kernel
