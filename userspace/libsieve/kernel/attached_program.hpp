// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What runs on an interface, and the way to our maps through it. Nothing is pinned: the attached program is
// the only place where state is found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/kernel/dispatcher.hpp"
#include "libsieve/kernel/instance.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::kernel {

enum class Mode { native, skb, offload };

// "native", "skb" or "offload".
[[nodiscard]] const char* mode_name(Mode mode);

struct Interface {
    std::string name;
    std::uint32_t index = 0;
};

// The interface of that name, in the network namespace of the caller.
[[nodiscard]] Result<Interface> find_interface(const std::string& name);
[[nodiscard]] std::vector<Interface> all_interfaces();

// The state of an interface's XDP hook.
struct Hook {
    Interface interface;
    Mode mode = Mode::native;
    std::optional<Program> attached;  // what the kernel runs; libxdp's dispatcher if that is in use
    std::optional<Program> ours;      // our program: the attached one, or one behind the dispatcher
    std::optional<Instance> instance; // its maps; absent beside `ours` if it speaks another version
    std::string other_version;        // then: which, as a sentence
    std::vector<DispatcherMember>
        members; // behind the dispatcher, if it is in use, in their order; ours, too

    [[nodiscard]] bool foreign() const { return attached && !ours; }
    [[nodiscard]] bool behind_dispatcher() const { return ours && ours->id != attached->id; }
    // Our place behind the dispatcher; nothing if we are not there or it does not tell.
    [[nodiscard]] std::optional<DispatcherPlace> place() const;
};

[[nodiscard]] Result<Hook> read_hook(const Interface& interface);

// The hook of an interface where our program runs and speaks our version. Else an error: Exit::no if nothing
// of ours is attached there.
[[nodiscard]] Result<Hook> find_ours(const std::string& interface);

} // namespace sieve::kernel
