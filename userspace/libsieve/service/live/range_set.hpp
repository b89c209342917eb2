// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The prefixes of a stream: a static set beside the live one (range_set_configuration.hpp). A change of its
// list leads to a new image that is swapped in; the list is small, and changes seldom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/service/lists/timed_list.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/live/live_set.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/service/sources/sandbox.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

class RangeSet {
  public:
    // Reads the list of the last good image. `kernel` and `state` must outlive the set. If that list is lost,
    // as that of a LiveSet may be, the list is empty, and no image is due before replace() brings all `parts`
    // of it back.
    [[nodiscard]] static RangeSet open(LiveSetOptions options, const std::set<Part>& parts,
                                       control::Kernel& kernel, const StateDirectory& state,
                                       control::Observer observer);

    struct Change {
        std::uint64_t added = 0; // prefixes
        std::uint64_t removed = 0;
        std::vector<std::string> kept_out{};
        std::optional<Refusal> refusal{}; // nothing has changed
    };

    [[nodiscard]] const std::string& name() const { return set_.name; }
    [[nodiscard]] const SetConfiguration& configuration() const { return set_; }
    [[nodiscard]] const TimedList& list() const { return list_; }
    // The list was lost, and replace() has not brought all of it back.
    [[nodiscard]] bool awaits_sources() const { return lost_.has_value(); }
    void set_protection(Protection protection) { protection_ = std::move(protection); }
    // From here on, guard most-growth has this limit.
    void let_grow(double most_growth) { set_.guards.most_growth = most_growth; }

    // Changes a part of the list only, as those of a LiveSet. Error: nobody knows whether this host can do
    // without what goes; nothing has changed then.
    [[nodiscard]] Result<Change> change(Part part, const EntryChange& change);
    [[nodiscard]] Result<Change> replace(Part part, const std::vector<TimedEntry>& all);
    // Why nothing of a whole list is to be taken, for its prefixes: they may have been cut short, or cover
    // too much. Of a stream, each decision counts by itself, and so addresses come without prefixes that
    // cover too much.
    [[nodiscard]] std::optional<Refusal> refuses_all(Part part, const std::vector<TimedEntry>& all);
    [[nodiscard]] Change expire(Time now);
    // Removes what this host has come to depend on since it was taken.
    [[nodiscard]] Change remove_protected();
    [[nodiscard]] std::optional<Time> next_expiry() { return list_.next_expiry(); }

    // Looks whether the last good image and its list are still there and whole; else an image is due.
    void check_files();
    // Whether the list has prefixes that the last good image has not, or the other way round.
    [[nodiscard]] bool is_due() const { return due_ && !lost_; }
    // Whether the list has prefixes that a hook with the set may not have in force.
    [[nodiscard]] bool awaits_image() const { return due_ || lost_; }
    // Whether prefixes are in force that have left the list.
    [[nodiscard]] bool loses() const { return !left_.empty(); }
    // Has an unprivileged child build the image of the list.
    [[nodiscard]] Result<Image> build(const SandboxSettings& sandbox) const;
    // Puts that image in force. The list must not have changed since. An error of one hook, too: is_due()
    // stays. So does lockout, if this host depends by now on what has left the list since the last image.
    [[nodiscard]] Status publish(Image image, PutInForce put_in_force);
    // A cycle was to put it in force, and has not.
    void publish_again() { due_ = true; }

  private:
    RangeSet(LiveSetOptions options, const std::set<Part>& parts, control::Kernel& kernel,
             const StateDirectory& state, control::Observer observer)
        : set_(std::move(options.set)), protection_(std::move(options.protection)),
          refuse_removal_(std::move(options.refuse_removal)), kernel_(&kernel), state_(&state),
          observer_(std::move(observer)), said_(parts) {}
    [[nodiscard]] std::optional<Refusal> guard(const TimedList& list, Part part, bool whole_list) const;
    [[nodiscard]] std::optional<Refusal> guard_size(const TimedList& list, Part part, bool whole_list) const;
    [[nodiscard]] TimedList list_after(const EntryChange& change, Change& report) const;
    [[nodiscard]] Status ask_again() const;
    [[nodiscard]] Result<Change> take(Part part, const EntryChange& change, bool whole_list);
    // What no guard has a say in.
    [[nodiscard]] Change remove(const std::vector<TimedEntry>& gone);

    SetConfiguration set_;
    Protection protection_;
    RefuseRemoval refuse_removal_;
    control::Kernel* kernel_;
    const StateDirectory* state_;
    control::Observer observer_;
    TimedList list_;
    SaidParts said_;
    std::vector<AddressRange> left_; // the list since its last image, by whoever was asked about it
    bool due_ = false;
    std::optional<std::uint64_t> lost_; // the list was lost, but for so many prefixes that could be read
};

} // namespace sieve::service::live
