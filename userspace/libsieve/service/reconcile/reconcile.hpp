// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is wanted against what runs: the difference as a plan, which can be shown or carried out. A plan for
// what runs already has nothing to do, and then nothing is touched.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/control/table/change_table.hpp"
#include "libsieve/control/table/rejoin.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/service/state/pauses.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Which filter a set shall have.
enum class WantedFilter : std::uint8_t {
    last_good, // that of its record
    new_build, // one that is built now, so none that is in force
    in_force, // whichever is in force under its name, unless that is older; where none is, that of its record
};
struct WantedVersion {
    WantedFilter filter = WantedFilter::in_force;
    std::string identity{};        // of the last good image; empty if there is none
    bool verifiable = true;        // its keys are kept, or will be
    bool together = false;         // it changes together with others (together.hpp)
    bool of_other_sources = false; // none of the set's sources has a part in what is in force
    bool action_waits =
        false; // that list had another action: it comes to no hook with the one of the new list
    std::vector<std::string> earlier{}; // SetRecord::earlier
    // Sets that the configuration no longer has, and whose lists have a part in this one's; and sets whose
    // list it was.
    std::set<std::string> replaces{};
    std::set<std::string> lacks{}; // those of them of which a source has not answered this one yet

    [[nodiscard]] bool has_image() const { return filter == WantedFilter::new_build || !identity.empty(); }
};
using WantedVersions = std::map<std::string, WantedVersion>; // by name

enum class HookStep : std::uint8_t {
    nothing, // what runs is what is wanted
    attach,  // our program comes, with its table
    change,  // its table changes
    unload,  // our program goes: no entry of the configuration names the hook any more, or it is paused
};

// One set of a hook, as it is and as it shall be.
struct SetPlan {
    std::string name{};
    bool comes = false;
    bool goes = false;
    bool moves = false;      // it stays, until another hook of the interface that is to have it has it
    bool new_filter = false; // it stays, with another filter
    std::optional<control::KeptFilter> kept{};         // it stays, with the filter that it has
    std::optional<control::SetAction> action_before{}; // of a set that stays or goes
    std::optional<control::SetAction> action{};        // of a set that stays or comes
    bool verified_before = false;
    bool verified = false;

    [[nodiscard]] bool other_action() const;
    [[nodiscard]] bool other_verification() const { return !comes && !goes && verified != verified_before; }
    [[nodiscard]] bool changes() const;
};

// A set of the configuration that is not in force yet, and does not come into force now.
struct WaitingSet {
    std::string name{};
    // The set that it waits for: one that passes, is asked before it, and has no list yet, so that this one
    // could drop what is to pass; or one that changes together with it. Empty: it has no list itself, or is
    // held back.
    std::string behind{};
    std::string held_back{}; // why, as HookPlan::held says

    [[nodiscard]] friend bool operator==(const WaitingSet&, const WaitingSet&) = default;
};

// What stays as it is at a hook, although the configuration or a list wants it otherwise, and why: by the
// name of a set, its filter and its action; by the empty name, what belongs to the table as a whole (its
// default, what becomes of unreadable packets and of replies, the order of sets, and which sets go).
using HeldBack = std::map<std::string, Error>;

struct HookPlan {
    std::string interface {};
    kernel::HookPoint point = kernel::HookPoint::xdp;
    HookStep step = HookStep::nothing;
    std::uint32_t program_id = 0;                  // that runs there; 0: none of ours
    const InterfaceConfiguration* entry = nullptr; // none for a hook to be unloaded, or paused
    std::vector<SetPlan> sets{};       // those that will be in force, in their order, then those that go
    std::vector<WaitingSet> waiting{}; // of the entry's sets, in their order
    HeldBack held{};                   // the rest goes on
    sieve_action default_action = SIEVE_ACTION_PASS; // as it will be; see default_waits()
    sieve_action unreadable = SIEVE_ACTION_DROP;     // likewise
    std::vector<std::string> order_before{};         // if sets that stay change places: all as they are
    std::optional<sieve_action> default_before{};    // if it changes
    std::optional<sieve_action> unreadable_before{}; // likewise
    std::optional<sieve_action> replies_before{};    // likewise
    sieve_action replies = SIEVE_ACTION_DROP;        // as they will be
    bool default_moves = false; // likewise: it stays drop, until another hook has that default
    bool notes_gone = false;    // what replies need was taken away by somebody, and comes back
    // It was attached otherwise than is configured, such as in another mode. Packets would pass unjudged
    // while that is changed, so the table is kept current as the program runs.
    std::optional<Error> otherwise{};
    std::optional<Error> obstacle{}; // why nothing can be done here
    bool paused = false; // the configuration names it, and `xdp-sieve pause` keeps our program away

    // The sets that will be in force, in their order.
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] bool waits(const std::string& set) const;
    [[nodiscard]] bool holds_table() const { return held.contains(std::string()); }
    // "held back: set a: ...; set b: ..."; empty if nothing is.
    [[nodiscard]] std::string held_text() const;
    // The default is to be drop, and stays pass as long as a set that passes has no list. Sets that are to go
    // stay until then.
    [[nodiscard]] bool default_waits() const;
    // Whether something stays only until another hook of the interface has it.
    [[nodiscard]] bool moves() const;
    // Says of these sets, or of all that move, that they go now; likewise of the default.
    void let_go_what_moves(const std::set<std::string>* only = nullptr, bool default_too = true);
};

// What is said of a set, once: an error of a set begins with "refused: " or with the set's name already, or
// not.
[[nodiscard]] std::string about_set(const std::string& set, const std::string& message);

// "set a waits for its first list", "set b waits for set a", "set c: why it is held back".
[[nodiscard]] std::string waiting_text(const WaitingSet& set);

struct ReconcilePlan {
    std::vector<HookPlan> hooks{};      // of the configuration, then those to be unloaded
    std::vector<std::string> missing{}; // interfaces named in full that are not there

    [[nodiscard]] bool nothing_to_do() const;
};

// Compares. Changes nothing. The plan points into the configuration. A pattern never means the loopback
// interface. Where an interface is paused, our program goes, whoever put it there.
//
// A set that has no list yet keeps nobody out, with one exception: as long as a set that passes has none, no
// set behind it begins to take packets, and the default does not become drop, since both could drop what is
// to pass. What takes packets already goes on; where the default waits, so do the sets that are to go, behind
// the others. Sets that change together come together. A set whose action cannot be had, such as for want of
// the interface that it redirects to, is held back. A set that is to go stays as long as one that replaces it
// has no list, or not all of it; or as long as another hook of the interface is to have it, and has not.
[[nodiscard]] ReconcilePlan make_plan(control::Kernel& kernel, const Configuration& configuration,
                                      const WantedVersions& wanted, const std::vector<ManagedHook>& managed,
                                      const Pauses& pauses = {});

// The same for one hook that an entry of the configuration names, as a plan of make_plan() has it. What is
// `held` back stays as it is, by the same rules: behind a set that is to pass and does not, no set begins to
// take packets.
[[nodiscard]] HookPlan plan_hook(control::Kernel& kernel, const Configuration& configuration,
                                 const WantedVersions& wanted, const HookPlan& before, HeldBack held);

// What became of a hook.
struct HookDone {
    std::uint32_t program_id = 0;             // that runs there now; 0 after unloading
    std::vector<std::string> remarks{};       // of attaching
    std::vector<control::Warning> warnings{}; // of the table
    std::vector<std::string> brought_in{};    // sets that got a filter
    std::chrono::milliseconds testing{0};     // bringing filters in and asking them, and attaching
    std::chrono::milliseconds swapping{0};    // changing the table
};

// Brings the filter in a map up to date that has the set's last good image, and is about to come into force.
// The controllers' lock is held.
using CatchUp = std::function<void(const std::string& set, std::uint32_t map_id)>;

// Carries out the plan for one hook without an obstacle. `identities` are those of the images to be put in
// force, staged or last good. Errors: those of control; nothing was changed then. `safety`: tables go on
// probation, and are asked about the host's addresses and those that the entry protects, as far as the
// configuration does not exempt the entry or one of its sets; unloading is final.
[[nodiscard]] Result<HookDone> carry_out(control::Kernel& kernel, const Configuration& configuration,
                                         const HookPlan& plan,
                                         const std::map<std::string, std::string>& identities,
                                         const StateDirectory& state, const control::Observer& observer,
                                         const control::Safety& safety = {}, const CatchUp& catch_up = {});

// The same in three parts, for hooks that change together: all are prepared, then all are checked under one
// lock, then all are committed (control/change_table.hpp).
class PreparedHook {
  public:
    // For HookStep::attach and HookStep::change. `kernel` and what `safety` points to outlive the result, as
    // do the plan and the configuration.
    [[nodiscard]] static Result<PreparedHook>
    prepare(control::Kernel& kernel, const Configuration& configuration, const HookPlan& plan,
            const std::map<std::string, std::string>& identities, const StateDirectory& state,
            const control::Observer& observer, const control::Safety& safety = {},
            const CatchUp& catch_up = {});
    PreparedHook(PreparedHook&&) noexcept;
    PreparedHook& operator=(PreparedHook&&) noexcept;
    ~PreparedHook();

    [[nodiscard]] Status check();
    [[nodiscard]] Result<HookDone> commit();

  private:
    struct Parts;
    explicit PreparedHook(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

// Builds the joint filter of the hook's sets anew if the entry wants one and a set that could be joined is
// not. Takes the sets whose filter in force is their last good image, with its list. A child builds it in the
// sandbox (sandbox.hpp). Nothing if there was nothing to do. Errors: those of join_in_sandbox() and
// control::rejoin(); nothing was changed then.
[[nodiscard]] Result<std::optional<control::Rejoined>>
join_sets(control::Kernel& kernel, const Configuration& configuration, const HookPlan& plan,
          const StateDirectory& state, const SandboxSettings& sandbox, const control::Observer& observer,
          const control::Safety& safety = {});

} // namespace sieve::service
