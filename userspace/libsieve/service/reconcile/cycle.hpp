// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One cycle of the service: ask the sources, compare with what runs, make good the difference, remember it.
// `xdp-sieve apply` runs one; a daemon runs one on every trigger, for the sets that the trigger is about.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/reconcile/reconcile.hpp"
#include "libsieve/service/reconcile/refresh.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Which sources are asked.
enum class Ask : std::uint8_t {
    all,     // those of every set
    some,    // those of the named sets; the others keep their last good image
    nothing, // none: every set gets its last good image, as after a reboot
};

enum class OnFailure : std::uint8_t {
    stop_all, // a set that fails, or a hook that cannot be had, and nothing is changed
    go_on,    // the others go on; the set keeps its last good image
};

struct SetSurvey;

struct CycleOptions {
    Ask ask = Ask::all;
    std::set<std::string> sets{}; // with Ask::some
    bool files_only = false;      // ReadRequest::files_only
    // Of these sets, what refresh_sets() has made ready for this configuration. The cycle takes it.
    std::map<std::string, std::shared_ptr<SetSurvey>> surveyed{};
    OnFailure on_failure = OnFailure::stop_all;
    std::optional<SandboxSettings> sandbox{}; // nothing: standard_sandbox()
    // Not zero: tables go on probation for that long.
    std::chrono::seconds confirm_within{0};
    // Whom to ask about the host's addresses before our program is attached where no packet is filtered yet;
    // null: whoever is asked about other changes.
    HostAddresses* host_where_none_runs = nullptr;
    CatchUp catch_up{}; // for sets that change in place; null: there are none
};

// What was found out about one set.
struct SetSurvey {
    const SetConfiguration* set = nullptr;
    bool asked = true;     // its sources were; else it is what the state directory has
    bool together = false; // it changes together with others, or not at all (together.hpp), whoever is asked
    std::optional<Examined> examined{};
    std::optional<Error> error{};                      // of a source, a list, or a guard
    std::optional<Error> behind{};                     // of a source whose last content is on the list
    std::optional<std::chrono::seconds> retry_after{}; // a server that failed wants to be asked again then
    Protection protection{};
    std::string action{};     // SetRecord::action, as it is to be
    bool not_its_own = false; // what is in force under its name, where it is not its last good list
    bool owner_waits = false; // a range set, beside a set that has the list of other sources yet
    // WantedVersion::replaces, by the sources that these sets and this one share.
    std::map<std::string, std::set<std::string>> replaces{};
    // A range set whose list is whole. It has no source that would say whether the record or what is in force
    // is newer, and whoever keeps it goes by that list.
    bool goes_by_record = false;
    std::optional<SetRecord> staged{}; // the image of a list that has changed, once it is built
    std::chrono::milliseconds building{0};

    [[nodiscard]] bool changed() const { return !error && examined && examined->changed(); }
    [[nodiscard]] const std::optional<SetRecord>& before() const;
    [[nodiscard]] bool refused() const { return examined && examined->refusal; }
};

// Asks the sources of these sets, which follow no stream, and builds and stages the images of lists that have
// changed. Nothing comes into force: a cycle takes the result, which points into the configuration. On any
// thread, and at the same time as cycles and refreshes of other sets. What fails is in the surveys.
// `files_only`: ReadRequest::files_only.
[[nodiscard]] std::vector<SetSurvey> refresh_sets(control::Kernel& kernel, const Configuration& configuration,
                                                  const std::set<std::string>& names,
                                                  const StateDirectory& state, HostAddresses& host,
                                                  const SandboxSettings& sandbox,
                                                  const control::Observer& observer, bool files_only = false);

// Examines every set as the options say, several at a time. Changes nothing. A set that follows a stream is
// not asked. Sets that change together are read as of one moment, and if one of them is asked, all are.
// Error: the host's addresses cannot be read.
[[nodiscard]] Result<std::vector<SetSurvey>> survey_sets(const Configuration& configuration,
                                                         const StateDirectory& state, HostAddresses& host,
                                                         const CycleOptions& options,
                                                         const control::Observer& observer);

// Which filters the plan is to put in force.
[[nodiscard]] WantedVersions wanted_versions(const std::vector<SetSurvey>& surveys);

// The first reason why nothing should be changed if a failure is to stop all; nothing if there is none.
[[nodiscard]] std::optional<Error> first_failure(const std::vector<SetSurvey>& surveys,
                                                 const ReconcilePlan& plan);

enum class SetOutcome : std::uint8_t {
    unchanged, // its last good image is still the one
    replaced,  // a new image is the last good one
    failed,    // a source, a list or the build failed; what other sources say may be in force
    refused,   // a guard refused the list
};

// How long a set took.
struct SetTimes {
    std::chrono::milliseconds fetching{0}; // asking the sources
    std::chrono::milliseconds reading{0};  // unpacking and parsing the list
    std::chrono::milliseconds building{0};
    std::chrono::milliseconds testing{0};  // bringing the filter in and asking it, on all hooks
    std::chrono::milliseconds swapping{0}; // changing the tables, on all hooks
};

struct SetReport {
    std::string name{};
    SetOutcome outcome = SetOutcome::unchanged;
    std::optional<Error> error{};
    std::optional<Guard> guard{};         // that refused it
    std::string accept{};                 // the command that takes the refused list all the same; or empty
    bool renewed = false;                 // a new list is in force, though a source may have failed
    bool action_waits = false;            // for the list of the set's new sources
    std::optional<SetRecord> last_good{}; // after the cycle; where another list is in force, it is that one's
    std::uint64_t entries_before = 0;
    SetTimes times{};
    std::optional<std::chrono::seconds> retry_after{}; // SetSurvey::retry_after
};

struct HookReport {
    HookPlan plan{};
    bool carried_out = false;
    bool locks_out = false;       // refused, since the table would drop what the host lives by
    HookDone done{};              // if it was
    std::optional<Error> error{}; // an obstacle, or why carrying out failed

    // What is wrong there: the error, or what is held back. Empty: nothing.
    [[nodiscard]] std::string trouble() const { return error ? error->message : plan.held_text(); }
    // Of the program that runs there now; 0: none of ours.
    [[nodiscard]] std::uint32_t program_id() const { return carried_out ? done.program_id : plan.program_id; }
};

// A program of the service that is loaded, and at no interface that can be seen: its own may be in another
// network namespace. It goes on being noted.
struct AwayProgram {
    ManagedHook noted{};
    bool left = false; // the configuration does not name its hook any more, so it is to be unloaded
};

struct CycleReport {
    std::vector<SetReport> sets{};
    std::vector<HookReport> hooks{};
    std::vector<std::string> missing{}; // interfaces
    std::vector<AwayProgram> away{};
    bool changed = false; // something of what is in force
    // The first thing that the state directory did not take. The others were remarked on.
    std::optional<Error> unwritten{};
};

// Runs a cycle. Of the sets that change together, all changes come into force or none, and of all sets where
// a failure stops all: every list has passed its guards, every filter is built, and every hook that has one
// of the sets has tested its table, before the first table is replaced. The tables of several hooks are then
// replaced one right after the other, under one lock. The error is one of OnFailure::stop_all before anything
// was changed; what fails later is in the report.
[[nodiscard]] Result<CycleReport> run_cycle(control::Kernel& kernel, const Configuration& configuration,
                                            const StateDirectory& state, HostAddresses& host,
                                            const CycleOptions& options, const control::Observer& observer);

} // namespace sieve::service
