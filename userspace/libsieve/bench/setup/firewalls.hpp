// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Packet filters as people run them, set up by their own commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libsieve/bench/setup/veth_pair.hpp"
#include "libsieve/bench/setup/workplace.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct Loaded {
    double seconds = 0;      // from a file with the addresses to the first packet that is judged
    std::uint64_t bytes = 0; // in the kernel
    std::string bytes_by{};  // where `bytes` comes from
};

// Drops packets whose source is on the list and passes all others, at the receiver of a veth pair.
class Firewall {
  public:
    virtual ~Firewall() = default;

    [[nodiscard]] virtual const char* name() const = 0;
    // Loads the list; packets are judged when it returns. Error: why the firewall cannot hold the list here.
    virtual Result<Loaded> load() = 0;
    // While a firewall is off, it keeps its list but sees no packet.
    virtual Status switch_off() = 0;
    virtual Status switch_on() = 0;
    // Removes what load() made. The firewall must be on.
    virtual Status remove() = 0;
};

// What all firewalls get.
struct FirewallSite {
    const VethPair& pair;
    const Workplace& place;                   // for their files
    std::span<const std::uint32_t> addresses; // the list
    std::filesystem::path program;            // xdp-sieve
    std::uint64_t image_bytes;                // of xdp-sieve's image of the list
};

// xdp-sieve with an exact set and with a verified filter, nftables at netdev ingress and at prerouting,
// iptables with ipset, and xdp-filter. Their files are written. The site must outlive them, and a bpffs must
// be mounted.
Result<std::vector<std::unique_ptr<Firewall>>> firewalls(const FirewallSite& site);

} // namespace sieve::bench
