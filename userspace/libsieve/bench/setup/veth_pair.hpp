// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A veth pair of one queue each way, and what its receiving end tells about the packets that it took.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::bench {

class VethPair {
  public:
    static constexpr const char* sender = "sieve-tx";
    static constexpr const char* receiver = "sieve-rx";

    // Makes the pair in the caller's network namespace and brings both ends up. The receiver has the
    // destination address of ipv4_tcp_frame(). The namespace's end removes the pair.
    static Result<VethPair> create();

    // The receiver's index.
    [[nodiscard]] int index() const { return index_; }

    // Packets that the receiver's queue took, whatever became of them. They are counted if the queue is
    // polled: while an XDP program is attached, or after poll_queue().
    [[nodiscard]] Result<std::uint64_t> packets();

    // Lets the receiver poll its queue without an XDP program too, as network cards do (`ethtool -K gro on`).
    [[nodiscard]] Status poll_queue() const;

    // Attaches an XDP program to the receiver in place of the one before. -1: none.
    [[nodiscard]] Status attach(int program) const;

  private:
    VethPair() = default;
    Status ask(const char* interface, void* data) const;
    Status find_counter();

    int index_ = 0;
    UniqueFd socket_;
    std::vector<std::uint64_t> values_;
    std::uint32_t count_ = 0;
    std::uint32_t counter_ = 0;
};

// The kernel thread that serves the receiver's queue, apart from the sender.
class ReceiverThread {
  public:
    // Starts the thread and ties it to the last processor. Error: the kernel has no threaded NAPI.
    static Result<ReceiverThread> start();

    // Returns when the thread has nothing left to do: all packets that were sent have been judged.
    [[nodiscard]] Status wait_until_idle() const;

    // The processor time that the thread has taken, in seconds.
    [[nodiscard]] Result<double> processor_time() const;

  private:
    explicit ReceiverThread(int pid) : pid_(pid) {}
    int pid_;
};

} // namespace sieve::bench
