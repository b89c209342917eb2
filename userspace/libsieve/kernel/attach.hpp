// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Puts our program on an interface and takes it away, never in another program's place unless told so.
#pragma once

#include <string>
#include <vector>

#include "libsieve/kernel/attached_program.hpp"
#include "libsieve/kernel/bpf_object.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::kernel {

enum class ModeChoice { automatic, native, skb };

struct AttachOptions {
    ModeChoice mode = ModeChoice::automatic; // automatic: native, or skb if the driver refuses
    bool force = false;                      // take the place of another program
    DispatcherPlace place = {};              // among the programs that share the hook
};

struct Attached {
    Hook hook;                        // as it is now
    bool frags = false;               // the program for multi-buffer frames was needed
    std::vector<std::string> remarks; // what a person should know: a fallback that was taken
};

// Attaches a loaded object where `before`, just read, found no program of ours. First through libxdp's
// dispatcher, so that our program lives beside others; where the kernel does not have what that needs, alone.
// The kernel itself checks that the hook is still as `before` says, so a race with another tool ends in a
// refusal and never in a lost program. Whoever fails here has changed nothing.
Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options);

// Takes our program away, only ours, and only if the hook is still as it was read.
[[nodiscard]] Status detach(const Hook& hook);

// The interface's MTU; 0 if the kernel would not say.
[[nodiscard]] int interface_mtu(const Interface& interface);

} // namespace sieve::kernel
