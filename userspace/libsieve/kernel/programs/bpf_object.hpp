// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A loaded copy of our BPF object, whose bytes are built into this program.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include <sieve/policy.h>

#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/kernel/programs/skeleton.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

class BpfObject {
  public:
    struct Options {
        bool tracing = false; // the program writes what it saw of each packet to trace(); never in service
        bool frags = false;   // load XDP's program for multi-buffer frames too, where the kernel has it
        // Makes the filters (FilterMap) for both banks, from slot 0 on. load() calls it once, in another
        // thread, while the kernel verifies the program, and puts the filters into the banks before it
        // returns. That costs a grace period, for which load() does not wait: see wait_until_filled().
        std::function<Result<std::vector<int>>()> filters{};
        HookPoint point = HookPoint::xdp; // whose program
    };

    // Loads programs and maps; nothing is attached. A refusal carries the end of the verifier's log.
    static Result<BpfObject> load(const Options& options);

    // A second copy of XDP's object, opened but not loaded, that will use this one's maps. libxdp loads and
    // attaches it. It has one of the two programs: that for multi-buffer frames if `frags`. Only object() may
    // be called on it.
    [[nodiscard]] Result<BpfObject> open_copy(bool frags) const;

    // Waits until the filters of Options are in the banks and the grace period after that is over.
    [[nodiscard]] Status wait_until_filled();

    [[nodiscard]] const Instance& instance() const { return instance_; }
    [[nodiscard]] HookPoint point() const { return point_; }
    [[nodiscard]] int program_fd() const;
    [[nodiscard]] int frags_program_fd() const; // -1 if it was not asked for or the kernel is too old

    // With tracing: what the program saw of the last packet that it ran on.
    [[nodiscard]] const volatile sieve_trace& trace() const;

    // The program's BTF is in here; for the tests.
    [[nodiscard]] bpf_object* object() const;

  private:
    using Filling = std::future<Status>;
    using Fill = std::function<Result<Filling>(UniqueFd table)>;
    struct Loaded {
        std::unique_ptr<Skeleton> skeleton;
        Filling filling;
    };

    // `fill`, if any, is called while the kernel verifies the program. Its error takes precedence.
    static Result<Loaded> load_skeleton(const Options& options, bool frags, const Fill& fill);
    BpfObject(Loaded loaded, HookPoint point, Instance instance)
        : skeleton_(std::move(loaded.skeleton)), point_(point), instance_(std::move(instance)),
          filling_(std::move(loaded.filling)) {}

    std::unique_ptr<Skeleton> skeleton_;
    HookPoint point_ = HookPoint::xdp;
    Instance instance_;
    Filling filling_; // last member: its destructor waits for the work on the skeleton's table
};

} // namespace sieve::kernel
