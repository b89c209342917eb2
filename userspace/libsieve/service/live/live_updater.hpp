// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keeps one live set current: follows its stream or its files, reads the lists that it has beside a stream,
// lets timed entries expire, changes the filters in force in place, and rebuilds them when that is due. Each
// source fails by itself: what the others say is taken all the same. None waits for another either: other
// threads ask CrowdSec's API and read the lists beside a stream.
//
// How a daemon uses it:
//
//     open()    at the start, before the first cycle: afterwards the set has a last good image, which the
//               cycle can put in force (an empty list has one, too)
//     step()    on a thread of its own, again and again: does whatever is due, and says when to call it next
//     wake()    from any thread: makes the next step() look at files and hooks at once
//
// A cycle must not ask the sources of a live set: it gives its sets to run_cycle() without them (is_live()).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/service/live/live_set.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/sources/fetch_decisions.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/service/state/ban_ledger.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// What happened, for the log, the status and the metrics.
struct LiveEvent {
    enum class What : std::uint8_t {
        changed,        // the list changed in place
        rebuilt,        // a new image was swapped in
        of_new_sources, // the record has the list of the configured sources, and had one of others. A cycle
                        // gives the set its new action, and puts the list in force where that waits for it
        failed,         // `error`: a source could not be asked, or its answer was not taken. The list stays
        put_off,        // `error`: what has changed cannot come into force yet. What is in force stays
        remark,         // `text`
    };
    What what = What::remark;
    std::string set{}; // or its range set
    LiveChange change{};
    std::optional<RebuildReason> reason{}; // of a rebuild
    std::optional<Guard> guard{};          // that refused
    std::optional<Error> error{};
    std::string text{};
    std::optional<std::uint64_t> entries{}; // on the list now; nothing: it was lost, and nobody knows
    bool in_step = false;                   // the list is what the source had when it was last asked
    bool others_go_on = false; // of a failure: the list is what other sources say, with what this one said
};

using FetchDecisions = std::function<tl::expected<Decisions, GatherFailure>(
    const CrowdsecSpec& source, SourceSchedule::Fetch ask, Time now, const SandboxSettings& settings)>;

struct LiveUpdaterSettings {
    Configuration configuration{}; // as with_range_sets() made it
    std::string set{};             // the name of the live set
    SandboxSettings sandbox{};
    std::function<void(const LiveEvent& event)> tell{}; // called on the thread of step()
    std::mutex* exclusive =
        nullptr;               // held while images change; a daemon holds it during a cycle. May be null
    bool needs_images = false; // an image that cannot be made or swapped in at once is an error of open()
    // Called on any thread: what was at work beside step() has ended, and step() is to take it. Null: whoever
    // calls step() looks at State::at_work.
    std::function<void()> step_soon{};
    // For tests. Null: the system's clocks, and fetch_decisions(). `uptime` is since the machine's start, and
    // nobody sets it. `fetch` is called on another thread.
    std::function<Time()> now{};
    std::function<std::chrono::milliseconds()> uptime{};
    FetchDecisions fetch{};
};

class LiveUpdater {
  public:
    [[nodiscard]] static Result<std::unique_ptr<LiveUpdater>> open(LiveUpdaterSettings settings,
                                                                   control::Kernel& kernel,
                                                                   const StateDirectory& state,
                                                                   HostAddresses& host);
    virtual ~LiveUpdater() = default;

    // Does what is due. Blocks while it reads, changes and swaps; never longer than the sandbox's limits
    // allow. Returns when it wants to be called again at the latest.
    virtual Time step() = 0;

    // From any thread: a file changed, or a person accepted a list. The next step() looks at all files, and
    // asks for an accepted list.
    virtual void wake() = 0;
    // From any thread: a cycle put tables in force. The next step() looks at their filters.
    virtual void reconcile_soon() = 0;
    // From any thread that holds the controllers' lock and `exclusive`: the set's last good image is in this
    // map, and is about to come into force. It gets what has changed since, before packets meet it.
    virtual void catch_up(std::uint32_t map_id) = 0;

    // Decisions of one origin, in force or about to be.
    struct OriginCount {
        std::string origin{}; // empty: the source names none
        std::uint64_t ipv4 = 0;
        std::uint64_t ipv6 = 0;
    };
    struct State {
        std::optional<std::uint64_t> entries{}; // single addresses; nothing: the list was lost
        std::optional<std::uint64_t> ranges{};  // prefixes, in the range set; likewise, or there is none
        std::uint64_t timed_entries = 0;        // decisions or lines
        std::vector<OriginCount> origins{};     // of decisions, by name
        bool in_step = false;                   // the list is what the source had when it was last asked
        bool at_work = false;                   // another thread asks, reads lists or builds a filter
        unsigned failures = 0;                  // of the source, in a row
        Time asked{};                           // when it last answered
        std::string last_error{};
        std::string accept{};  // the command that takes a refused list all the same; or empty
        std::string put_off{}; // why the list is not in force yet, where no source fails; or empty
        // Of a set that follows bans.
        bool follows_bans = false;
        BanLedger::Mark ledger{}; // up to here, the bans are on the list
        bool settles = false;     // the list is about to come into force
        std::string lacks{};      // why it is not in force; empty: it is
    };
    [[nodiscard]] virtual State state() const = 0; // from any thread
    // From any thread: whether this single address is banned. Prefixes are in the range set.
    [[nodiscard]] virtual bool is_banned(const Prefix& single) const = 0;
};

// Whether a set that has no image is put in force at once, as make_first_images() does it: one that follows a
// stream, or its range set. One that passes waits for its sources, but for bans, which are at hand.
[[nodiscard]] bool gets_first_image(const Configuration& configuration, const SetConfiguration& set);

// Makes the last good images of the sets that follow a stream and have none, so that a cycle can put them in
// force. They are empty until somebody follows the stream. `configuration` is as with_range_sets() made it.
[[nodiscard]] Status make_first_images(const Configuration& configuration, control::Kernel& kernel,
                                       const StateDirectory& state, HostAddresses& host,
                                       const SandboxSettings& sandbox);

} // namespace sieve::service::live
