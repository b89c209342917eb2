// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What runs at a hook of an interface, and the way to our maps through it. Nothing is pinned: all state is
// reached through the attached program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/kernel/hooks/program.hpp"
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"
#include "libsieve/kernel/host/interface.hpp"
#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/kernel/programs/hook_point.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

enum class Mode { native, skb, offload };

// "native", "skb" or "offload".
[[nodiscard]] const char* mode_name(Mode mode);

// A BPF filter at a hook of tc, or all filters of another kind that share a priority. Filters are asked in
// the order of their priorities, the lower number first.
struct TcFilter {
    std::uint32_t priority = 0;
    std::string kind{};           // "bpf", "flower", "u32" and so on
    std::uint32_t handle = 0;     // 0: of another kind
    std::uint32_t program_id = 0; // 0: of another kind, or classic BPF
    std::string name{};           // as the owner of a BPF filter named it
    bool direct_action = false;   // the program's return value is the verdict
};

// The state of one hook of an interface. At tc any number of programs live side by side, and what others have
// there does not matter: `attached` is our program or nothing.
struct Hook {
    Interface interface;
    HookPoint point = HookPoint::xdp;
    Mode mode = Mode::native;         // of XDP
    std::optional<Program> attached;  // what the kernel runs; libxdp's dispatcher if that is in use
    std::optional<Program> ours;      // our program: the attached one, or one behind the dispatcher
    std::optional<Instance> instance; // its maps; absent beside `ours` if it speaks another version
    std::string other_version;        // then: which, as a sentence
    bool by_load = false;             // `ours` was attached by `load`, and not by ip link or another tool
    std::vector<DispatchedProgram>
        members;                   // behind the dispatcher, if it is in use, in their order; ours, too
    std::vector<TcFilter> filters; // all filters at tc's hook, in their order; ours, too

    [[nodiscard]] bool foreign() const { return attached && !ours; }
    [[nodiscard]] bool speaks_our_version() const { return ours && other_version.empty(); }
    [[nodiscard]] bool behind_dispatcher() const { return ours && ours->id != attached->id; }
    // Our rank behind the dispatcher; nothing if we are not behind one, or it does not tell.
    [[nodiscard]] std::optional<DispatcherRank> rank() const;
    // Our filter at tc's hook.
    [[nodiscard]] const TcFilter* filter() const;
    // Those that are asked before it. It does not see the packets that they accept.
    [[nodiscard]] std::span<const TcFilter> filters_before() const;
};

// Nothing if our program runs at the hook and speaks our version; else an error of kind not_attached or
// other_version.
[[nodiscard]] Status refuse_unless_ours(const Hook& hook);

// "NAME (id 17)"
[[nodiscard]] std::string program_text(const Program& program);

// "flower, priority 10", or of a BPF program "NAME (id 17), priority 10".
[[nodiscard]] std::string filter_text(const TcFilter& filter);

// The same of several, one after the other.
[[nodiscard]] std::string filters_text(std::span<const TcFilter> filters);

// The error of a hook that somebody else's program holds: "eth0 runs WHAT".
[[nodiscard]] tl::unexpected<Error> foreign_program(const Hook& hook, const std::string& what);

// If `program` is ours, fills in the fields of `hook` that describe our program.
[[nodiscard]] Status recognise(Hook& hook, const Program& program);

} // namespace sieve::kernel
