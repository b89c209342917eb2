// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/list_parts.hpp"

namespace sieve::service::live {

std::set<Part> parts_of(const SetConfiguration& set) {
    std::set<Part> parts;
    if (followed_stream(set) != nullptr || !follows_stream(set)) parts.insert(Part::followed);
    if (follows_bans(set)) parts.insert(Part::bans);
    if (follows_stream(set) && !sources_of_lists(set).empty()) parts.insert(Part::lists);
    return parts;
}

std::uint64_t prefixes_in(const TimedList& list, Part part) {
    std::uint64_t entries = 0;
    for (unsigned origin = 0; origin <= list_origin; origin++) {
        const auto code = static_cast<std::uint8_t>(origin);
        if (part_of(entry_id(0, code)) == part)
            entries += list.timed_entries(true, code) + list.timed_entries(false, code);
    }
    return entries == list.timed_entries() ? list.prefixes() : entries;
}

TimedList part_alone(const TimedList& list, Part part) {
    TimedList alone;
    list.for_each([&](const TimedEntry& timed_entry) {
        if (part_of(timed_entry.id) == part) alone.add(timed_entry);
    });
    return alone;
}

bool SaidParts::all_with(Part part) const {
    std::set<Part> said = said_;
    said.insert(part);
    return said == parts_;
}

EntryChange SaidParts::replacement(const TimedList& list, Part part,
                                   const std::vector<TimedEntry>& all) const {
    const bool all_said = all_with(part);
    TimedList wanted;
    for (const TimedEntry& timed_entry : all) wanted.add(timed_entry);
    EntryChange change;
    list.for_each([&](const TimedEntry& timed_entry) {
        const Part its = part_of(timed_entry.id);
        const bool gone = its == part ? !wanted.find(timed_entry.prefix, timed_entry.id)
                                      : all_said && !parts_.contains(its);
        if (gone) change.removed.push_back(timed_entry);
    });
    change.added.reserve(wanted.timed_entries());
    wanted.for_each([&](const TimedEntry& timed_entry) { change.added.push_back(timed_entry); });
    return change;
}

} // namespace sieve::service::live
