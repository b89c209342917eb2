// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which packets that arrive answer something that the host began: connection tracking as docs/replies.md
// describes it, slowly, with tuples in a map and exact times. It uses no code of the packet path.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sieve/policy.h>

#include "bpf/packet.hpp"

namespace sieve::test {

class ReplyModel {
  public:
    // `either`: a flow whose time is over by less than two of the program's units of time, and a connection
    // that went on after its time was over, since another flow may have taken its entry.
    enum class Answer { no, yes, either };

    // A frame that the host sends, or that arrives, at that time in seconds. Frames have an Ethernet header.
    void leaves(const Bytes& frame, double time);
    [[nodiscard]] Answer arrives(const Bytes& frame, double time) const;

    [[nodiscard]] std::size_t flows() const { return flows_.size(); }

  private:
    struct Flow {
        double last = 0;  // the host's last packet that counts
        double limit = 0; // seconds that it lives after it
        double sure = 0;  // less than the limit where the unit of time decides
        double begun = 0;
        bool stream = false;
        bool closing = false;
        bool doubtful = false;
    };
    // What identifies a flow, in the host's direction.
    struct Tuple {
        std::string from, to; // addresses, as their bytes
        unsigned proto = 0;
        unsigned a = 0, b = 0; // ports; or an echo's identifier
        enum Kind { ports, echo, pair, dhcp } kind = ports;
        auto operator<=>(const Tuple&) const = default;
    };
    // A packet, as far as it matters here.
    struct Seen {
        Tuple tuple;
        bool later = false; // a fragment other than the first
        unsigned flags = 0; // of TCP
        unsigned icmp = 0;  // its type
        std::vector<std::uint8_t> quote;
    };
    static std::optional<Seen> read(const Bytes& frame);
    static std::optional<Seen> read_ip(const Bytes& packet, std::size_t at, bool quoted);
    [[nodiscard]] Answer ask(const Tuple& tuple, double time) const;
    void touch(const Tuple& tuple, double time, double limit);

    std::map<Tuple, Flow> flows_;
};

} // namespace sieve::test
