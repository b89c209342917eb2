// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kernel's side as control sees it. This is a seam: it lets tests cover all of control's decisions
// without root. There are two implementations, RealKernel and the tests' fake.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sieve/event.h>

#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/kernel/filter_header.hpp"
#include "libsieve/kernel/flow_memory.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/hooks/device.hpp"
#include "libsieve/kernel/hooks/hook_point.hpp"
#include "libsieve/kernel/joint_preflight.hpp"
#include "libsieve/kernel/key_map.hpp"
#include "libsieve/kernel/redirect_maps.hpp"
#include "libsieve/kernel/replay.hpp"
#include "libsieve/kernel/sampling.hpp"
#include "libsieve/kernel/set_table.hpp"
#include "libsieve/kernel/sketch.hpp"
#include "libsieve/kernel/stats.hpp"
#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

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
};

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

// The lines of a filter in force. Packets see what is written there.
class RunningFilter {
  public:
    virtual ~RunningFilter() = default;
    [[nodiscard]] virtual const sieve_lookup& lookup() const = 0;
    [[nodiscard]] virtual const sieve_probes& probes() const = 0;
    [[nodiscard]] virtual sieve_file& file() = 0;
    [[nodiscard]] virtual std::span<sieve_line> lines() = 0;
    // A sample of its members, and what it promises not to match. A joint filter has neither.
    [[nodiscard]] virtual std::span<const sieve_witness> witnesses() = 0;
    [[nodiscard]] virtual std::span<const sieve_exception> exceptions() = 0;
};

// The keys beside a filter in force: its exact set, or the keys inserted since it was built.
class RunningKeys {
  public:
    virtual ~RunningKeys() = default;
    [[nodiscard]] virtual Result<std::optional<kernel::KeyNote>> find(const sieve_key& key) = 0;
    // Adds the key, or changes its note. False if the map is full.
    [[nodiscard]] virtual Result<bool> put(const sieve_key& key, const kernel::KeyNote& note) = 0;
    [[nodiscard]] virtual Status erase(const sieve_key& key) = 0; // no error if it is not there
    [[nodiscard]] virtual Result<std::vector<kernel::NotedKey>> all() = 0;
    [[nodiscard]] virtual std::uint64_t most() = 0; // keys that there is room for
};

// What the program reports about packets, besides counting them.
struct Watching {
    std::uint32_t sample = 0; // one packet in `sample` is sampled for a listener; 0: none
    bool counts_keys = false; // matches are counted by key
};

// The path of sampled matches from the program to this listener. The hook that it was started at must outlive
// the stream.
class EventStream {
  public:
    virtual ~EventStream() = default;
    // Hands over the events that are there, or waits up to `milliseconds` for some. See kernel::EventRing.
    [[nodiscard]] virtual Status poll(int milliseconds) = 0;
    [[nodiscard]] virtual bool in_place() const = 0; // false once another listener has taken over
    [[nodiscard]] virtual Status stop() = 0;         // the caller holds the lock
    [[nodiscard]] virtual Result<std::uint64_t> lost() const = 0;
};

// The right to change what runs in this network namespace. The last owner's release gives it back.
using Held = std::shared_ptr<const void>;

class Kernel {
  public:
    virtual ~Kernel() = default;

    [[nodiscard]] virtual Result<kernel::Interface> find_interface(const std::string& name) = 0;
    [[nodiscard]] virtual std::vector<kernel::Interface> interfaces() = 0; // of this network namespace
    [[nodiscard]] virtual int mtu(const kernel::Interface& interface) = 0; // 0: unknown
    [[nodiscard]] virtual Result<kernel::Device> read_device(const kernel::Interface& interface) = 0;
    [[nodiscard]] virtual Result<kernel::Target> find_target(const std::string& name) = 0;

    // Refuses at once what the kernel would refuse at the end, before minutes of work are spent.
    [[nodiscard]] virtual Status may_load_programs() = 0;
    // Announces that a program will be attached soon, so that the kernel is probed now. The probes leave
    // programs that the kernel frees after a grace period; attaching within that period takes longer.
    virtual void expect_to_attach() = 0;

    // Waits up to `patience` for another controller. `waiting` is told once who that controller is. Then
    // tidies up behind a controller that died.
    [[nodiscard]] virtual Result<Held>
    hold_lock(std::chrono::milliseconds patience,
              const std::function<void(const std::string& holder)>& waiting) = 0;

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

    [[nodiscard]] virtual Result<kernel::Hook> read_hook(const kernel::Interface& interface,
                                                         kernel::HookPoint point) = 0;
    // Whether a program of that id is loaded, wherever it is attached.
    [[nodiscard]] virtual Result<bool> has_program(std::uint32_t id) = 0;
    // The hook must speak our version.
    [[nodiscard]] virtual kernel::TableInForce read_table(const kernel::Hook& hook) = 0;
    // These calls change what packets meet. After an error of kind unfinished, the change was made all the
    // same. After any other error, it was not.
    [[nodiscard]] virtual Status replace_table(const kernel::Hook& hook,
                                               const kernel::WantedTable& table) = 0;
    // Keeps the change that is on probation there, or takes it back. See kernel::SetTable.
    [[nodiscard]] virtual Status end_probation(const kernel::Hook& hook, bool keep) = 0;
    [[nodiscard]] virtual Status detach(const kernel::Hook& hook) = 0;

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

    [[nodiscard]] virtual Result<std::unique_ptr<RunningFilter>> open_filter(std::uint32_t map_id) = 0;
    // The joint filter of a table.
    [[nodiscard]] virtual Result<std::unique_ptr<RunningFilter>> open_joint(std::uint32_t map_id) = 0;
    // The exact set with that id; the map of inserted keys with that id.
    [[nodiscard]] virtual Result<std::unique_ptr<RunningKeys>> open_exact(std::uint32_t exact_id) = 0;
    [[nodiscard]] virtual Result<std::unique_ptr<RunningKeys>> open_inserted(std::uint32_t inserted_id) = 0;
    // Any map in force, for a WantedTable of start_replay().
    [[nodiscard]] virtual Result<UniqueFd> open_map(std::uint32_t map_id) = 0;
    // A map of these inserted keys of a set, with room for `most` in all. WantedSet takes the descriptor.
    [[nodiscard]] virtual Result<UniqueFd> make_inserted(const std::string& name, std::uint32_t most,
                                                         std::span<const kernel::NotedKey> keys) = 0;
    // Returns once every lookup in a filter in force that was under way when it was called has ended. See
    // kernel/grace_period.hpp.
    [[nodiscard]] virtual Status grace_period() = 0;
    // Nanoseconds since the machine started, the time that it slept included (CLOCK_BOOTTIME).
    [[nodiscard]] virtual std::uint64_t boot_time() = 0;

    // Reading what is in force. The hooks must speak our version.
    [[nodiscard]] virtual Result<kernel::FilterHeader> read_filter(std::uint32_t map_id) = 0;
    // The memory of an exact set.
    [[nodiscard]] virtual Result<std::uint64_t> exact_bytes(std::uint32_t exact_id) = 0;
    [[nodiscard]] virtual Result<kernel::Stats> read_stats(const kernel::Hook& hook) = 0;
    [[nodiscard]] virtual Watching watching(const kernel::Hook& hook) = 0;
    [[nodiscard]] virtual Result<kernel::Tally> read_tally(const kernel::Hook& hook, std::size_t most) = 0;

    // The caller holds the lock. See kernel/sketch.hpp and kernel/event_ring.hpp.
    [[nodiscard]] virtual Status start_tally(const kernel::Hook& hook) = 0;
    [[nodiscard]] virtual Status stop_tally(const kernel::Hook& hook) = 0;
    using VisitEvent = std::function<bool(const sieve_event& event)>; // false ends the poll
    [[nodiscard]] virtual Result<std::unique_ptr<EventStream>>
    start_events(const kernel::Hook& hook, const kernel::Sampling& sampling, VisitEvent visit) = 0;
};

} // namespace sieve::control
