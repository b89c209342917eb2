// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Finds, attaches and detaches our program at a hook. Another program is replaced only by force. The code of
// each hook is in the folder of its name.
#pragma once

#include <string>
#include <vector>

#include "libsieve/kernel/hooks/hook.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

enum class ModeChoice { automatic, native, skb };

struct AttachOptions {
    ModeChoice mode = ModeChoice::automatic; // automatic: native, or skb if the driver refuses
    bool force = false;                      // replace another program
    DispatcherRank rank = {};                // among the programs that share the hook; tc has no chain
};

struct Attached {
    Hook hook;                        // as it is now
    bool frags = false;               // the program for multi-buffer frames was needed
    std::vector<std::string> remarks; // what a person should know: a fallback that was taken
};

// What is at that hook now.
[[nodiscard]] Result<Hook> read_hook(const Interface& interface, HookPoint point = HookPoint::xdp);

// The hook of an interface where our program runs and speaks our version. Else refuse_unless_ours()'s error.
[[nodiscard]] Result<Hook> find_ours(const std::string& interface, HookPoint point = HookPoint::xdp);

// An error if somebody else's program is attached, unless `force` is set. A dispatcher is no error: it may
// take our program in.
[[nodiscard]] Status may_attach(const Hook& hook, bool force);

// Attaches a loaded object of the same hook point where `before`, just read, found no program of ours.
// Refuses an interface whose packets the parser cannot read. XDP: first through libxdp's dispatcher, so that
// our program lives beside others; where the kernel does not have what that needs, alone. The kernel itself
// checks that the hook is still as `before` says, so a race with another tool ends in a refusal and never in
// a lost program. tc: beside whatever other filters there are. An error of kind unfinished tells what was
// changed, or that this is not known; any other error: nothing was.
Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options);

// Detaches our program, and no other, if the hook is still as it was read. Errors as those of attach().
[[nodiscard]] Status detach(const Hook& hook);

} // namespace sieve::kernel
