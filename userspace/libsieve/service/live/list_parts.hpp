// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The parts of a set's list (timed_entry.hpp): which there are, and what a source that says all of its part
// changes.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/service/lists/timed_list.hpp"

namespace sieve::service::live {

// Those of the set's sources.
[[nodiscard]] std::set<Part> parts_of(const SetConfiguration& set);

// The number of prefixes in a part of the list. Beside other parts, a prefix of several decisions counts
// several times.
[[nodiscard]] std::uint64_t prefixes_in(const TimedList& list, Part part);

// That part of the list, alone.
[[nodiscard]] TimedList part_alone(const TimedList& list, Part part);

// Which parts of a list have been said as a whole, and which of them may have been refused.
class SaidParts {
  public:
    explicit SaidParts(std::set<Part> parts) : parts_(std::move(parts)), may_be_refused_(parts_) {}

    void say(Part part) { said_.insert(part); }
    [[nodiscard]] bool has(Part part) const { return said_.contains(part); }
    [[nodiscard]] bool all() const { return said_ == parts_; }
    // Once that one is, too.
    [[nodiscard]] bool all_with(Part part) const;

    // A list of the part was refused, or taken. True: it was taken, and whatever refusal is noted is of the
    // past: there may be one from the start until all parts are taken. A person's answer may come late, so
    // each list says so anew. Bans, which nobody can accept, do not.
    void refuse(Part part) { may_be_refused_.insert(part); }
    [[nodiscard]] bool take(Part part) {
        const bool is_news = may_be_refused_.erase(part) > 0 || part != Part::bans;
        return is_news && may_be_refused_.empty();
    }

    // From the list to one that has this for the part, and the other parts as they are. When all parts are
    // said then, what is left of sources that the set no longer has goes, too.
    [[nodiscard]] EntryChange replacement(const TimedList& list, Part part,
                                          const std::vector<TimedEntry>& all) const;

  private:
    std::set<Part> parts_; // of the set's sources
    std::set<Part> said_;
    std::set<Part> may_be_refused_;
};

} // namespace sieve::service::live
