// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Filters on their way into the kernel, and copies of the program that no packet reaches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/access/replies.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/kernel/programs/hook_point.hpp"
#include "libsieve/kernel/programs/joint_preflight.hpp"
#include "libsieve/kernel/programs/replay.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A copy of the program that no packet reaches, with sets in its slots from 0 on.
class Trial {
  public:
    virtual ~Trial() = default;

    // Asks the program about members and non-members of the set in `slot`. See kernel::preflight().
    [[nodiscard]] virtual Result<kernel::PreflightReport> test(std::uint32_t slot, const ReadySet& set) = 0;

    // Whether the set in `slot` matches a packet with this key, of these fields. No packet may be able to
    // carry the key; then it does not.
    [[nodiscard]] virtual Result<bool> matches(std::uint32_t slot, bool verified, const sieve_key& key,
                                               std::uint32_t fields) = 0;
    // Puts a filter that is in force elsewhere into an unused slot, with the exact set behind it (0: none). A
    // copy with such filters must not go live.
    [[nodiscard]] virtual Status include(std::uint32_t slot, std::uint32_t map_id,
                                         std::uint32_t exact_id) = 0;

    // The copy asks the memory of these replies once it is live and its table says so.
    [[nodiscard]] virtual Status use(const ReadyReplies& replies) = 0;

    // Puts the table in force in this same copy and attaches the copy at the hook that `before` describes, as
    // it was just read. The table judges the very first packet. Called once, last. See kernel::attach().
    [[nodiscard]] virtual Result<kernel::Attached> go_live(const kernel::Hook& before,
                                                           const kernel::WantedTable& table,
                                                           const kernel::AttachOptions& options) = 0;
};

// A copy of the program that is asked about packets, one after another.
class Replayer {
  public:
    virtual ~Replayer() = default;
    [[nodiscard]] virtual Result<kernel::Replayed> run(std::span<const std::uint8_t> frame) = 0;
    [[nodiscard]] virtual const kernel::TableInForce& table() const = 0;
};

class Trials {
  public:
    virtual ~Trials() = default;

    // Refuses at once what the kernel would refuse at the end, before minutes of work are spent.
    [[nodiscard]] virtual Status may_load_programs() = 0;
    // Announces that a program will be attached soon, so that the kernel is probed now. The probes leave
    // programs that the kernel frees after a grace period; attaching within that period takes longer.
    virtual void expect_to_attach() = 0;

    // `coming`: keys that the exact set must have room for, besides what it leaves for later ones.
    [[nodiscard]] virtual Result<SetMaps> bring_in(const Image& image, const std::vector<sieve_key>* exact,
                                                   const std::string& name, std::uint64_t coming) = 0;

    // A joint filter of these sets, in the order of their numbers. Fails unless it answers correctly in a
    // copy of the program. See kernel::preflight_joint().
    [[nodiscard]] virtual Result<SetMaps> bring_in_joint(kernel::HookPoint point, const JointFilter& joint,
                                                         std::span<const kernel::JoinedSet> sets) = 0;

    // Loads a copy of the program. Another thread calls `make` meanwhile for the copy's sets, which must
    // outlive the call. `frags`: also loads the program for multi-buffer frames.
    using MakeSets = std::function<Result<std::vector<const ReadySet*>>()>;
    [[nodiscard]] virtual Result<std::unique_ptr<Trial>> start_trial(kernel::HookPoint point, bool frags,
                                                                     const MakeSets& make) = 0;
    [[nodiscard]] virtual Result<std::unique_ptr<Replayer>>
    start_replay(kernel::HookPoint point, const kernel::WantedTable& table) = 0;
};

} // namespace sieve::control
