// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact list of a set whose single addresses change in place, and the filters in force that are to hold
// it (docs/live-changes.md).
//
//     change()   the list changes; the journal has it first; then every filter in force gets the difference
//     reconcile()    the same without a new change: for filters that came meanwhile, such as on a new
//     interface rebuild    a new image of the list, swapped in: when keys do not fit, or when a filter in
//     force is none
//                of an exact table
//
// A filter in force says itself which keys it has. One that is as the last change left it gets the latest
// difference. Any other one is read and compared with the list: after a start, after a crash, and when
// somebody else changed it. So does one that is about to come into force, before packets meet it
// (catch_up()).
//
// A list has parts (timed_entry.hpp), one for each sort of source. An address is on the list as long as one
// part has it.
//
// If the files of the list are damaged or gone, no filter is touched until all sources have said their whole
// lists and an image of them is built: a filter in force has every member that was known, and an image of
// half a list has not.
//
// The list of new sources that has another action comes into force with it: a whole list that changes while
// the action waits has no filter touched. An image of it becomes the last good one, and the next cycle brings
// both at one commit.
//
// Not thread-safe, but for catch_up(). change(), reconcile() and finish_rebuild() block: they take the
// controllers' lock. They belong to a thread of their own (live_updater.hpp has one).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/keys/live_filters.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/service/lists/timed_list.hpp"
#include "libsieve/service/live/journal.hpp"
#include "libsieve/service/live/list_parts.hpp"
#include "libsieve/service/live/removal.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/service/sources/sandbox.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// Why a new image is needed.
enum class RebuildReason : std::uint8_t {
    no_image,     // there is none yet
    options,      // the set's options have changed
    unsaved,      // changes cannot be written where the image is
    unknown,      // the list was lost, or a filter in force is of another kind
    other_action, // a cycle is to put the list in force, with the set's new action
    no_room,      // keys do not fit
    little_room,  // as many keys as have just come would not fit
    long_journal, // the list is better written as a whole
    in_memory,    // the state directory has room again for what the spare folder has
};
// Whether packets may be judged wrongly until then; the other reasons can wait.
[[nodiscard]] bool is_urgent(RebuildReason reason);

struct LiveChange {
    std::uint64_t added = 0;             // prefixes that came onto the list
    std::uint64_t removed = 0;           // that left it
    bool looked = false;                 // at the filters; else there was nothing to do
    std::uint64_t filters = 0;           // in force, that have the whole list now
    std::uint64_t keys = 0;              // insertions and deletions, over all filters
    std::chrono::microseconds taken{0};  // for them, with taking the lock and finding the filters
    std::vector<std::string> kept_out{}; // addresses that this host depends on, and so were not taken
    std::optional<Refusal> refusal{};    // by a guard: nothing has changed
    std::optional<Error>
        delayed{}; // the list has the change, but the filters could not be had; reconcile() again
    // A filter that may come back cannot have the whole list; reconcile() again when it is back.
    bool comes_back_behind = false;
    std::optional<RebuildReason> rebuild_due{};
};

// Everything that a build needs, so that another thread can do it.
struct RebuildOrder {
    std::string set;
    control::FeedSpec feed;
    KeySet keys;
};

// Has an unprivileged child make the image of a rebuild. Blocks for as long as building takes.
[[nodiscard]] Result<Image> build_live_image(RebuildOrder order, const SandboxSettings& sandbox);

struct LiveSetOptions {
    SetConfiguration set;
    Protection protection{};
    bool in_force = false;          // or should be: something that an empty filter must not take the place of
    std::string action{};           // action_digest(); empty: nothing waits for it
    RefuseRemoval refuse_removal{}; // null: nobody is asked
};

class LiveSet {
  public:
    // Reads the last good image's list and its journal. Nothing there: an empty list. `kernel` and `state`
    // must outlive the set. If they are damaged or cannot be read, or if it is in force and nothing is there,
    // the list is empty, too, and awaits_sources(). Error: the set cannot be changed in place: it is
    // verified, or its size or key is a wrong one.
    [[nodiscard]] static Result<LiveSet> open(LiveSetOptions options, control::Kernel& kernel,
                                              const StateDirectory& state, control::Observer observer);

    [[nodiscard]] const std::string& name() const { return options_.set.name; }
    [[nodiscard]] const TimedList& list() const { return list_; }
    // From any thread.
    [[nodiscard]] bool is_banned(const Prefix& single) const;
    [[nodiscard]] std::optional<RebuildReason> rebuild_due() const { return due_; }
    // Looks whether the last good image and its list are still there and whole: no interface that comes gets
    // its program without.
    void check_files();
    // Whether the last good image is in the spare folder; and whether the state directory has room for the
    // next one then.
    [[nodiscard]] bool is_in_memory() const { return state_->is_in_spare(name(), base_); }
    [[nodiscard]] bool can_move_home() const { return state_->has_room_again(name(), base_); }
    // By a new image, since the journal is in use.
    void move_home() { due(RebuildReason::in_memory); }
    // The list was lost, and replace() has not brought back all of its parts: an image of it would lack
    // members.
    [[nodiscard]] bool awaits_sources() const { return lost_ && !said_.all(); }
    void set_protection(Protection protection) { options_.protection = std::move(protection); }
    // From here on, guard most-growth has this limit.
    void let_grow(double most_growth) { options_.set.guards.most_growth = most_growth; }
    // The sources of a part say what is on the list; or a list of theirs was refused, before it came here.
    void nothing_is_refused(Part part);
    void note_refused(Part part) { said_.refuse(part); }
    // Whether all configured sources have said their lists, and the record still names others.
    [[nodiscard]] bool is_of_new_sources();
    // Corrects the record. False: it cannot be written now.
    [[nodiscard]] bool note_sources();

    // Whether another action is in force with the list than is configured.
    [[nodiscard]] bool has_other_action() const;
    // Whether a new list of the part is to come with it: the first one since the set was opened.
    [[nodiscard]] bool comes_with_action(Part part) const { return !said_.has(part) && has_other_action(); }
    // From here on, the list is for a cycle to put in force, and filters stay as they are.
    void wait_for_cycle();
    [[nodiscard]] bool waits_for_cycle() const { return waiting_.has_value(); }
    // The list is that of the new sources: the image that the cycle is to take is due.
    void list_is_ready() { due(RebuildReason::other_action); }
    // The cycle has come, or is not waited for any longer. Error: the journal cannot be written, and the list
    // waits.
    [[nodiscard]] Result<LiveChange> stop_waiting();

    // Takes the change of a part into the list and the journal, and puts the difference in force. All
    // prefixes are single addresses. Those that this host depends on are left out. Error: the journal cannot
    // be written, or nobody knows whether this host can do without what goes; nothing has changed then.
    [[nodiscard]] Result<LiveChange> change(Part part, EntryChange change);
    // The same, from all of the part as its sources have it now. Once all sources have said their lists, what
    // is left of sources that the set no longer has goes, too.
    [[nodiscard]] Result<LiveChange> replace(Part part, std::vector<TimedEntry> all);
    // From here on, an address of these ranges that is to go stays on the list until release(): the prefix
    // that takes its place is not in force yet.
    void hold(std::vector<AddressRange> ranges);
    [[nodiscard]] bool holds() const { return !held_ranges_.empty(); }
    // Removes what hold() kept on the list. Error lockout if this host depends on it; that of remove(), too.
    [[nodiscard]] Result<LiveChange> release();
    // Removes what has ended by now.
    [[nodiscard]] Result<LiveChange> expire(Time now);
    [[nodiscard]] std::optional<Time> next_expiry() { return list_.next_expiry(); }
    // Removes what this host has come to depend on since it was taken.
    [[nodiscard]] Result<LiveChange> remove_protected();

    // Puts in force what is not yet, on every hook that has the set.
    LiveChange reconcile();

    // Brings the filter in a map up to date that is about to come into force. From any thread that holds the
    // controllers' lock and no finish_rebuild() runs beside. What cannot be done is left to reconcile().
    void catch_up(std::uint32_t map_id);

    // A rebuild: take the order, build, give the image back. Changes may go on meanwhile.
    [[nodiscard]] Result<RebuildOrder> begin_rebuild();
    // Stages the image, swaps it in wherever the set is in force, makes it the last good one, and reconciles.
    // If the list waits for a cycle, the image only becomes the last good one.
    [[nodiscard]] Result<LiveChange> finish_rebuild(Image image);
    // The rebuild failed. It stays due.
    void abandon_rebuild();

  private:
    LiveSet(LiveSetOptions options, control::Kernel& kernel, const StateDirectory& state,
            control::Observer observer)
        : options_(std::move(options)), kernel_(&kernel), state_(&state), observer_(std::move(observer)),
          said_(parts_of(options_.set)) {}

    // Prefixes that one list has and another has not. True: the later one has it.
    using Difference = std::unordered_map<Prefix, bool, PrefixHash>;

    // A filter in force, as a change left it.
    struct NotedFilter {
        std::uint32_t map_id = 0;
        std::uint64_t changes = 0; // of its header

        [[nodiscard]] friend bool operator==(const NotedFilter&, const NotedFilter&) = default;
    };

    [[nodiscard]] std::uint32_t fields() const { return options_.set.feed.fields; }
    [[nodiscard]] Status load();
    // `prefixes` were on it, as far as is known.
    void lose_list(const std::string& why, std::uint64_t prefixes);
    [[nodiscard]] Status load_journal();

    [[nodiscard]] Result<LiveChange> take(Part part, EntryChange change, bool whole_list);
    [[nodiscard]] Result<LiveChange> remove(EntryChange change);
    [[nodiscard]] std::vector<TimedEntry> take_held_out(EntryChange& change) const;
    void drop_what_changes_nothing(EntryChange& change) const;
    [[nodiscard]] std::optional<Refusal> guard(Part part, const EntryChange& change, bool whole_list) const;
    [[nodiscard]] Members leaving(const EntryChange& change) const;
    [[nodiscard]] std::optional<Refusal>
    unless_accepted(Refusal refusal, Part part, const EntryChange& change, const ListSize& before) const;
    [[nodiscard]] Status append_to_journal(const EntryChange& change);
    [[nodiscard]] Status write_down(EntryChange change, LiveChange& report);
    void enter(const EntryChange& change, LiveChange& report);
    static void note(Difference& difference, const Prefix& prefix, bool on);

    // Puts into the image, and on its list, what came since the order was taken: otherwise it would be in no
    // filter between the swap and the change that follows.
    [[nodiscard]] Status add_latest(Image& image);
    void put_in_force(LiveChange& report);
    void rebuild_for(const control::LiveFilter& filter, RebuildReason reason, LiveChange& report);
    [[nodiscard]] bool is_changeable(const control::LiveFilter& filter) const;
    [[nodiscard]] bool has_noted(const control::LiveFilter& filter) const;
    [[nodiscard]] control::KeyDifference keys_of(const Difference& difference) const;
    [[nodiscard]] control::WantedKeys all_keys() const; // as long as the list stays
    [[nodiscard]] std::vector<SourceProvenance> sources_now() const;
    void due(RebuildReason reason);

    LiveSetOptions options_;
    control::Kernel* kernel_;
    const StateDirectory* state_;
    control::Observer observer_;
    TimedList list_;
    std::string base_; // identity of the last good image; empty: there is none
    // What catch_up() reads and writes as well. Whoever wants the controllers' lock, too, takes that first.
    std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
    Difference pending_;             // between the list of the noted filters and this list
    std::vector<NotedFilter> noted_; // in force, as the last change left them; and those that caught up
    std::optional<Journal> journal_;
    std::optional<RebuildReason> due_;
    SaidParts said_;                                  // since it was opened
    std::vector<SourceProvenance> sources_;           // of the list, as the record has them
    bool sources_said_ = false;                       // all parts are said, and the record may not know it
    std::optional<std::vector<EntryChange>> waiting_; // for a cycle; no journal has them
    std::vector<AddressRange> held_ranges_;           // of hold()
    TimedList held_;                                  // what goes with release()

    // The list's files were damaged. Until an image of the list is in force, nobody knows what the filters
    // have.
    std::optional<std::uint64_t> lost_; // the list was, but for so many prefixes, as the guards know
    std::uint64_t room_for_ = 0;        // prefixes, in the last good image

    struct Rebuilding {
        std::vector<EntryChange> since;  // that came since the order was taken, or since add_latest()
        Difference difference;           // likewise
        std::uint64_t timed_entries = 0; // of the image
        std::uint64_t room_for = 0;      // prefixes, in the image
    };
    std::optional<Rebuilding> rebuilding_;
};

// Whether the set is kept by a LiveSet: it follows a stream, or a kind whose keys change in place is asked
// for by name, the key is one address, it is not verified and has no exceptions, and all its sources are
// files.
[[nodiscard]] bool is_live(const SetConfiguration& set);
// What makes it so: "is of kind ddlcbf", say.
[[nodiscard]] std::string why_live(const SetConfiguration& set);

// Whether the list of the set has changed in place since the image of this record was built: the image alone
// lacks members, and has some that are gone.
[[nodiscard]] bool has_changed_since_image(const StateDirectory& state, const std::string& set,
                                           const SetRecord& record);
// The list of a set that changes in place, with what has changed since the image of this record was built.
// Only reads. Error: no such list is kept, or it is damaged.
[[nodiscard]] Result<Feed> read_live_list(const SetConfiguration& set, const SetRecord& record,
                                          const StateDirectory& state);
// Those of the sets that follow a stream: what catch_up() is to be called for where nobody follows them.
[[nodiscard]] Result<std::map<std::string, LiveSet>>
changed_since_their_images(const Configuration& configuration, control::Kernel& kernel,
                           const StateDirectory& state, const control::Observer& observer);

} // namespace sieve::service::live
