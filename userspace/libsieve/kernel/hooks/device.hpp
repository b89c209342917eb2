// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An interface as one end of a redirection: what the kernel tells about it without sending anything.
#pragma once

#include <cstdint>
#include <optional>

#include <sieve/policy.h>

#include "libsieve/kernel/hooks/interface.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::kernel {

// What the driver does with XDP. The kernel keeps this up to date: one end of a veth pair can send only while
// the other end polls, and some drivers can only while a program is attached to them.
struct XdpFeatures {
    bool native = false;     // runs programs in the driver
    bool sends = false;      // sends frames that native XDP redirects to it (ndo_xdp_xmit)
    bool sends_long = false; // also those of more than one buffer
};

struct Device {
    bool up = false;
    bool carrier = false;
    int mtu = 0;
    std::optional<sieve_link> link;   // what packets begin with; nothing if that is not known
    std::optional<XdpFeatures> xdp{}; // nothing: the kernel does not tell (Linux before 6.3)
    // Frames may arrive whose TCP or UDP checksum nobody has computed, because the sender leaves that to its
    // interface, and the interface hands them on in memory. The socket buffer says so; an XDP frame cannot.
    bool unfinished_checksums = false;
};

// Asks the kernel (rtnetlink, the generic netlink family "netdev", ethtool). An error if there is no such
// interface; what else the kernel does not tell stays unset.
[[nodiscard]] Result<Device> read_device(const Interface& interface);

// True unless the interface of that index is known to be down: for those who only show it.
[[nodiscard]] bool is_up(std::uint32_t index);

} // namespace sieve::kernel
