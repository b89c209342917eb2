// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A list of entries of several fields, some of them prefixes or open, as a person reads it: a packet is a
// member if an entry holds it. Knows nothing of keys, probes and filters. All addresses are of two small
// networks, so that entries meet.
#pragma once

#include <compare>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace sieve::model {

// Which fields entries have.
struct FlowForm {
    bool source = false;
    bool destination = false;
    bool port = false; // of the destination
    bool protocol = false;
};

struct FlowPacket {
    bool v4 = true;
    unsigned source = 0;      // the last bits of the address: one of flow_hosts
    unsigned destination = 0; // likewise
    unsigned port = 0;
    unsigned protocol = 0;
};

inline constexpr unsigned flow_host_bits = 4;
inline constexpr unsigned flow_hosts = 1U << flow_host_bits;
inline constexpr unsigned flow_ports[] = {53, 443};
inline constexpr unsigned flow_protocols[] = {6, 17};

inline std::string flow_address(bool v4, unsigned host) {
    return v4 ? fmt::format("10.0.0.{}", host) : fmt::format("2001:db8::{:x}", host);
}

// The hosts whose first bits are those of `host`.
struct FlowHosts {
    unsigned host = 0;
    unsigned bits = flow_host_bits; // that count

    [[nodiscard]] bool holds(unsigned other) const { return (host ^ other) >> (flow_host_bits - bits) == 0; }
    [[nodiscard]] std::string text(bool v4) const {
        return fmt::format("{}/{}", flow_address(v4, host), (v4 ? 32 : 128) - flow_host_bits + bits);
    }
    friend auto operator<=>(const FlowHosts&, const FlowHosts&) = default;
};

// Nothing: any value.
struct FlowEntry {
    bool v4 = true;
    std::optional<FlowHosts> source{};
    std::optional<FlowHosts> destination{};
    std::optional<unsigned> port{};
    std::optional<unsigned> protocol{};

    friend auto operator<=>(const FlowEntry&, const FlowEntry&) = default;

    [[nodiscard]] bool holds(const FlowPacket& packet) const {
        return (!(source || destination) || v4 == packet.v4) && (!source || source->holds(packet.source)) &&
               (!destination || destination->holds(packet.destination)) && (!port || *port == packet.port) &&
               (!protocol || *protocol == packet.protocol);
    }
    [[nodiscard]] std::string text(const FlowForm& form) const {
        std::string line;
        const auto add = [&](const std::string& field) { line += (line.empty() ? "" : " ") + field; };
        if (form.source) add(source ? source->text(v4) : "*");
        if (form.destination) add(destination ? destination->text(v4) : "*");
        if (form.port) add(port ? std::to_string(*port) : "*");
        if (form.protocol) add(protocol ? std::to_string(*protocol) : "*");
        return line;
    }
};

class FlowList {
  public:
    explicit FlowList(const FlowForm& form) : form_(form) {}

    std::set<FlowEntry> entries{};

    [[nodiscard]] bool holds(const FlowPacket& packet) const {
        for (const FlowEntry& entry : entries)
            if (entry.holds(packet)) return true;
        return false;
    }
    [[nodiscard]] std::vector<std::string> texts() const {
        std::vector<std::string> lines;
        for (const FlowEntry& entry : entries) lines.push_back(entry.text(form_));
        return lines;
    }
    // Every packet that differs in these fields.
    [[nodiscard]] std::vector<FlowPacket> packets() const {
        std::vector<FlowPacket> all;
        for (const bool v4 : {true, false})
            for (unsigned source = 0; source < (form_.source ? flow_hosts : 1); source++)
                for (unsigned destination = 0; destination < (form_.destination ? flow_hosts : 1);
                     destination++)
                    for (std::size_t port = 0; port < (form_.port ? std::size(flow_ports) : 1); port++)
                        for (std::size_t proto = 0; proto < (form_.protocol ? std::size(flow_protocols) : 1);
                             proto++)
                            all.push_back({v4, source, destination, flow_ports[port], flow_protocols[proto]});
        return all;
    }
    // One that leaves open at most one field, or what `form` names alone.
    [[nodiscard]] FlowEntry any(std::mt19937_64& random) const {
        FlowEntry entry{.v4 = random() % 2 == 0};
        const auto hosts = [&] {
            FlowHosts some{.bits = static_cast<unsigned>(random() % (flow_host_bits + 1))};
            const unsigned open = flow_host_bits - some.bits;
            some.host = static_cast<unsigned>(random() % flow_hosts) >> open << open;
            return some;
        };
        if (form_.source) entry.source = hosts();
        if (form_.destination) entry.destination = hosts();
        if (form_.port) entry.port = flow_ports[random() % std::size(flow_ports)];
        if (form_.protocol) entry.protocol = flow_protocols[random() % std::size(flow_protocols)];
        if (random() % 3 != 0) return entry;
        if (form_.port)
            entry.port.reset();
        else if (form_.source && form_.destination && random() % 2 == 0)
            entry.source.reset();
        else
            entry.protocol.reset();
        return entry;
    }
    // Whole keys that leave one field open, so that a set of this list has probes for every entry above.
    void add_one_of_each_form() {
        for (const bool v4 : {true, false}) {
            FlowEntry entry{.v4 = v4};
            if (form_.source) entry.source = FlowHosts{};
            if (form_.destination) entry.destination = FlowHosts{};
            if (form_.port) {
                entries.insert(entry);
                continue;
            }
            entries.insert(entry);
            entry.protocol = flow_protocols[0];
            entry.source.reset();
            entries.insert(entry);
        }
    }

  private:
    FlowForm form_;
};

} // namespace sieve::model
