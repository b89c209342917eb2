// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The memory of flows that this host, or a network behind it, began (sieve/flow.h): made, found, filled,
// counted. The programs of every hook and interface that are told so share one. Nothing is pinned: it lives
// as long as a program holds it, and is found through the programs that are attached.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sieve/flow.h>

#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

// How many flows a memory can be asked to hold. A flow takes one entry, and shares another one, for fragments
// of the answers, with all flows between the same two addresses. There is room for three entries a flow, so
// that the load stays between a third and two thirds.
inline constexpr std::uint64_t least_flows = 64;
inline constexpr std::uint64_t most_flows = 1ULL << 27U;

// The kernel memory of a flow memory for so many flows: 24 bytes a flow, in pages, and one page.
[[nodiscard]] std::uint64_t flow_memory_bytes(std::uint64_t max_flows);

// From this load on (entries in use by all entries) entries are refused or evicted more and more often: worth
// a warning.
inline constexpr double flow_memory_warning_load = 0.5;

// What a flow memory holds at this moment.
struct FlowMemoryFacts {
    std::uint64_t max_flows = 0;      // what it was made for
    std::uint64_t bytes = 0;          // of kernel memory
    std::uint64_t entries = 0;        // that it has room for
    std::uint64_t used = 0;           // of these, entries that have not expired
    std::uint64_t established = 0;    // of these, TCP connections that are established, streams of UDP
    std::chrono::seconds learning{0}; // for how long connections that exist already are still learnt

    [[nodiscard]] double load() const { return static_cast<double>(used) / static_cast<double>(entries); }
};

// How far a flow that is noted from outside the packet path has come.
enum class FlowAge {
    begun,       // as after its first packet
    established, // TCP: the connection is established; others: packets went out for a while
    closing,     // TCP: the host has sent a FIN; others: as begun
};

class FlowMemory {
  public:
    // An empty one, under fresh secret hash keys. An error for a number that is not within the bounds above,
    // and if there is no memory.
    static Result<FlowMemory> create(std::uint64_t max_flows);

    // That of the map with this id. Error other_version: the map has another layout.
    static Result<FlowMemory> open(std::uint32_t map_id);

    // The one that a program's instance uses; nothing if it uses none.
    static Result<std::optional<FlowMemory>> of_instance(const Instance& instance);

    // The one in force in this network namespace: that of any program that notes flows, else of any instance.
    // Nothing if there is none.
    static Result<std::optional<FlowMemory>> in_force();

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] std::uint32_t id() const { return id_; }
    [[nodiscard]] std::uint64_t max_flows() const { return head().max_flows; }
    // What a program that uses this memory has a copy of.
    [[nodiscard]] const sieve_flow_where& where() const { return head().where; }

    // Makes an instance ask this memory; nothing: makes it ask none. The caller holds the Lock.
    [[nodiscard]] Status put_into(const Instance& instance) const;
    [[nodiscard]] static Status take_out_of(const Instance& instance);

    // Notes a flow as if this host had sent a packet of it: the source of `key` is this host, or a host
    // behind it. All of the key's fields count: addresses, ports of protocols that have them, protocol; of an
    // ICMP echo, the identifier stands for the source port. Any process may call it while packets flow. False
    // if both lines of the flow are full of entries that would outlive it.
    [[nodiscard]] bool note(const sieve_key& key, FlowAge age) const;

    // Whether an answer to the flow would pass now. Same form of the key as above.
    [[nodiscard]] bool holds(const sieve_key& key) const;

    // From now on and for so long, any segment that a host sends of a TCP connection notes the connection,
    // not only the first. Zero ends the learning.
    void learn_for(std::chrono::seconds time) const;

    // Reads all entries: about 10 ms for a million flows.
    [[nodiscard]] FlowMemoryFacts facts() const;

    // Clears entries that have expired. Whoever keeps a memory for months calls it once a month: the time of
    // an entry is stored in 22 bits and comes round after 208 days.
    void sweep() const;

    // For tests: all in this memory becomes older, as if time had passed, by whole units. Returns by how
    // much.
    std::chrono::nanoseconds age(std::chrono::seconds time) const;

  private:
    struct Unmap {
        std::size_t bytes;
        void operator()(void* pages) const;
    };
    using Pages = std::unique_ptr<void, Unmap>;
    FlowMemory(UniqueFd fd, std::uint32_t id, Pages pages)
        : fd_(std::move(fd)), id_(id), pages_(std::move(pages)) {}
    static Result<FlowMemory> map(UniqueFd fd);

    [[nodiscard]] sieve_flow_head& head() const;
    [[nodiscard]] std::array<sieve_flow_line*, SIEVE_FLOW_LINES>
    lines_at(const sieve_flow_place& place) const;
    [[nodiscard]] std::span<__u64> entries() const;

    UniqueFd fd_;
    std::uint32_t id_ = 0;
    Pages pages_;
};

} // namespace sieve::kernel
