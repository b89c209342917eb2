// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A loaded copy of our BPF object, out of the bytes that are built into this program.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <sieve/policy.h>

#include "libsieve/kernel/instance.hpp"
#include "libsieve/util/result.hpp"

struct xdp_sieve_bpf; // the generated skeleton
struct bpf_object;

namespace sieve::kernel {

class BpfObject {
  public:
    struct Options {
        bool tracing = false; // leave what the program saw of each packet in trace(); never in service
        bool frags = false;   // load the program for multi-buffer frames too, where the kernel has it
        // Makes the filters (FilterMap) that shall stand in both banks' places from slot 0 on. Called once
        // and by another thread: it and the grace period that its filters cost pass while the program is
        // verified.
        std::function<Result<std::vector<int>>()> filters{};
    };

    // Loads programs and maps; nothing is attached. A refusal carries the end of the verifier's log.
    static Result<BpfObject> load(const Options& options);

    // A second copy that is opened but not loaded and will use this one's maps when it is: what libxdp, which
    // loads programs itself, attaches. Of the two programs it has one, that for multi-buffer frames if
    // `frags`. Only object() is of use on it.
    [[nodiscard]] Result<BpfObject> open_copy(bool frags) const;

    [[nodiscard]] const Instance& instance() const { return instance_; }
    [[nodiscard]] int program_fd() const;
    [[nodiscard]] int frags_program_fd() const; // -1 if it was not asked for or the kernel is too old

    // With tracing: what the program saw of the last packet that it ran on.
    [[nodiscard]] const volatile sieve_trace& trace() const;

    // The program's BTF is in here; for the tests.
    [[nodiscard]] bpf_object* object() const;

  private:
    struct Destroy {
        void operator()(xdp_sieve_bpf* skeleton) const;
    };
    using Skeleton = std::unique_ptr<xdp_sieve_bpf, Destroy>;

    using Fill = std::function<Status(int table_fd)>;

    // `fill`, if any, is called beside the verification; its error goes before.
    static Result<Skeleton> load_skeleton(bool tracing, bool frags, const Fill& fill);
    BpfObject(Skeleton skeleton, Instance instance)
        : skeleton_(std::move(skeleton)), instance_(std::move(instance)) {}

    Skeleton skeleton_;
    Instance instance_;
};

} // namespace sieve::kernel
