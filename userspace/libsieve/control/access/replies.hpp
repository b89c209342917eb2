// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What replies need of the kernel: the flow memory, and the programs that note flows there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// What was made for replies.
struct RepliesMade {
    std::uint64_t max_flows = 0;
    std::uint64_t bytes = 0;  // of the flow memory
    bool memory_made = false; // it is new; else other hooks use it, too, or did before
    bool replaced = false;    // likewise, in place of one that a program of another version had
    std::optional<std::uint64_t>
        seeded{}; // flows that existed and were noted; nothing: notes were taken before
};

// What replies need at an interface: the flow memory, and the program that notes there what leaves. What was
// brought is taken away again with this object, unless it is kept.
class ReadyReplies {
  public:
    virtual ~ReadyReplies() = default;
    [[nodiscard]] virtual const RepliesMade& made() const = 0;
    // A program that runs asks the memory as soon as its table says so.
    [[nodiscard]] virtual Status serve(const kernel::Hook& hook) = 0;
    // The table that needs it is in force. Connections that were missed are still learnt for a while.
    virtual void keep() = 0;
};

// What the replies of a hook have.
struct RepliesState {
    // The interface's noting program is there, and writes into the memory that the hook's program asks.
    bool noting = false;
    std::optional<kernel::FlowMemoryFacts> memory{};
    sieve_note_counts counts{}; // of the noting program
    // Others' filters that are asked before it. It does not see the packets that they accept.
    std::vector<kernel::TcFilter> before{};
};

class Replies {
  public:
    virtual ~Replies() = default;

    // Makes ready what replies need at an interface: the network namespace's flow memory, or a new one;
    // the noting program; notes of the flows that exist. An error says what could not be had, and nothing was
    // changed; invalid_request: the memory in use has another size. The caller holds the lock.
    [[nodiscard]] virtual Result<std::unique_ptr<ReadyReplies>>
    ready_replies(const kernel::Interface& interface, const WantedFlows& flows) = 0;
    // Takes away from an interface what none of its tables needs any more. The caller holds the lock.
    [[nodiscard]] virtual Status end_replies(const kernel::Interface& interface) = 0;
    [[nodiscard]] virtual Result<RepliesState> read_replies(const kernel::Hook& hook) = 0;
    // Whether a packet with this key, of all fields, answers a flow in the memory that the hook's program
    // asks.
    [[nodiscard]] virtual Result<bool> is_reply(const kernel::Hook& hook, const sieve_key& packet) = 0;
};

} // namespace sieve::control
