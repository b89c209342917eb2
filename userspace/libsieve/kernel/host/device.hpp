// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An interface as one end of a redirection: what the kernel tells about it without sending anything.
#pragma once

#include <cstdint>
#include <optional>

#include <sieve/policy.h>

#include "libsieve/kernel/host/interface.hpp"
#include "libsieve/util/results/result.hpp"

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
    // Frames may arrive with a TCP or UDP checksum that nobody has computed: the sender left it to its
    // interface, and the interface passes the frames on in memory. The socket buffer records that; an XDP
    // frame cannot.
    bool unfinished_checksums = false;
    // A tap device. For some packets its driver runs the program as the generic hook does, though in native
    // mode.
    bool tap = false;
};

// Asks the kernel (rtnetlink, the generic netlink family "netdev", ethtool). An error if there is no such
// interface. Whatever else the kernel does not tell stays unset.
[[nodiscard]] Result<Device> read_device(const Interface& interface);

// True for a tun device whose writers state each packet's protocol beside the packet (made without
// IFF_NO_PI).
[[nodiscard]] bool states_protocol(std::uint32_t index);

// False if the interface with that index is known to be down. Only for display.
[[nodiscard]] bool is_up(std::uint32_t index);

} // namespace sieve::kernel
