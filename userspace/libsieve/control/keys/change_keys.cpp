// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/change_keys.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/keys/changeable_set.hpp"
#include "libsieve/control/keys/exact_set.hpp"
#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/control/keys/grow_set.hpp"
#include "libsieve/control/keys/keys_left.hpp"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/prefixes/key_expansion.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/key_order.hpp"

namespace sieve::control {

namespace {

Status check_request(const KeyRequest& request) {
    if (request.lifetime && request.change != KeyChange::insert)
        return invalid_request("a lifetime belongs to keys that are inserted once");
    if (request.lifetime && request.lifetime->count() <= 0)
        return invalid_request("a lifetime must be longer than nothing");
    if (request.grow && request.change == KeyChange::erase)
        return invalid_request("no set grows by deleting keys");
    return {};
}

Status check_fields(const RunningFilter& filter, const Members& members, const HookName& hook,
                    const std::string& set) {
    if (filter.lookup().fields == members.fields()) return {};
    return failure(ErrorKind::changed_meanwhile,
                   fmt::format("set {} was meanwhile replaced by a set with other fields ({}), which was "
                               "left as it is",
                               set, format_fields(filter.lookup().fields)),
                   {.interface = hook.interface, .set = set});
}

// An entry of a set of several fields that no probe takes, or that would be too many keys.
std::string no_key_probe(const sieve_key& entry, const StoredKeys& stored) {
    const std::uint32_t fields = stored.fields();
    const std::string text = entry_text(entry, fields);
    const EntryForm form = form_of(entry, fields);
    const std::optional<EntryForm> probe = stored.probe_for(entry);
    if (!probe)
        return fmt::format(
            "{} names fields, or lengths of prefixes, that no packet is asked for; build the set of "
            "a list that has an entry of this form",
            text);
    const int family = family_of(entry, fields).value_or(SIEVE_FAMILY_V4);
    const bool whole = form.fields() == fields;
    const std::uint32_t short_length =
        probe->source - form.source > probe->destination - form.destination ? form.source : form.destination;
    return fmt::format("{} would be stored as 2^{} keys of the probe {}, and 2^{} are the most; build the "
                       "set {}of a list that "
                       "has an entry of this form, or give longer prefixes",
                       text, probe->source - form.source + probe->destination - form.destination,
                       describe_probe(as_probe(*probe), family), std::bit_width(most_stored_keys) - 1,
                       whole ? fmt::format("with --{} {}, or ",
                                           family == SIEVE_FAMILY_V4 ? "v4-lengths" : "v6-lengths",
                                           short_length - (family == SIEVE_FAMILY_V4 ? address_bits - 32 : 0))
                             : "");
}

std::string no_prefix_probe(const sieve_key& entry, const StoredKeys& stored) {
    const bool v4 = family_of(entry, stored.fields()) == SIEVE_FAMILY_V4;
    const std::uint32_t shift = v4 ? address_bits - 32 : 0;
    const std::uint32_t length = form_of(entry, stored.fields()).source;
    const std::uint32_t probe = stored.probe_for(entry).value_or(EntryForm{.source = address_bits}).source;
    return fmt::format(
        "{} would be stored as 2^{} prefixes of /{}, the next length that the set probes, and 2^{} "
        "are the most; build the set with --{} {}, or give longer prefixes",
        entry_text(entry, stored.fields()), probe - length, probe - shift,
        std::bit_width(most_stored_keys) - 1, v4 ? "v4-lengths" : "v6-lengths", length - shift);
}

tl::unexpected<Error> no_probe(const std::string& set, const sieve_key& entry, const StoredKeys& stored) {
    const bool one = sieve_is_one_address(stored.fields()) != 0;
    return bad_input(
        fmt::format("set {}: {}", set, one ? no_prefix_probe(entry, stored) : no_key_probe(entry, stored)));
}

// The members as the set's filter takes them.
Result<std::vector<sieve_key>> entries_for(const StoredKeys& stored, const std::string& set,
                                           const Members& members) {
    if (!stored.of_prefixes()) {
        if (members.has_ranges()) {
            Members first(members.fields());
            if (members.ranges.empty())
                first.key_ranges.push_back(members.key_ranges.front());
            else
                first.ranges.push_back(members.ranges.front());
            return bad_input(fmt::format(
                "set {} holds single keys, no prefixes or ranges, such as {}; build it of a list that has "
                "some, or with --v4-lengths or --v6-lengths",
                set, entry_text(entries_of(first).front(), members.fields())));
        }
        std::vector<sieve_key> keys(members.keys.size());
        for (std::size_t i = 0; i < keys.size(); i++) keys[i] = members.keys.at(i);
        return keys;
    }
    std::vector<sieve_key> entries = entries_of(members);
    for (const sieve_key& entry : entries)
        if (stored.count(entry) > static_cast<double>(most_stored_keys)) return no_probe(set, entry, stored);
    return entries;
}

// The members that one filter lacks, by its map's id. Any other filter lacks all of the request.
struct Lacking {
    std::uint32_t map_id = 0;
    Members members;
};

// One change under the lock.
struct Change {
    KeysChanged changed{};
    std::uint32_t map_id = 0; // of the filter that has it
    bool prefixes = false;    // the set holds prefixes
    bool whole = false;       // of all members of the request
};

Result<Change> change_once(Kernel& kernel, const HookName& name, const std::string& set, const Members& all,
                           const KeyRequest& request, const Observer& observer, const Safety& safety,
                           const Lacking* lacking = nullptr) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(OpenSet open, open_changeable(kernel, name.interface, now.set));
    if (lists_and_changes(open.filter->lookup()))
        return failure(
            ErrorKind::changed_meanwhile,
            fmt::format("set {} was meanwhile replaced by an exact one, which was left as it is", set),
            {.interface = name.interface, .set = set});
    const bool whole = lacking == nullptr || lacking->map_id != now.set.map_id;
    const Members& members = whole ? all : lacking->members;
    SIEVE_TRY(check_fields(*open.filter, members, name, set));
    SIEVE_ASSIGN(const std::vector<sieve_key> entries, entries_for(open.stored, set, members));
    if (request.grow && !now.verified())
        return invalid_request(fmt::format(
            "set {} is not verified, so nobody knows its keys, and it cannot grow by itself", set));
    SIEVE_TRY(refuse_lockout(kernel, hook,
                             ComingKeys{.map_id = now.set.map_id,
                                        .fields = members.fields(),
                                        .entries = entries,
                                        .prefixes = open.stored.of_prefixes(),
                                        .erased = request.change == KeyChange::erase},
                             safety));
    KeysChanged changed;
    SIEVE_ASSIGN(const std::vector<ExpiredKeys> expired, expire_keys_at(kernel, hook));
    for (const ExpiredKeys& one : expired) changed.expired += one.taken_out;
    if (request.lifetime) {
        SIEVE_ASSIGN(now, with_room_for_ends(kernel, hook, std::move(now), entries.size()));
        SIEVE_ASSIGN(open, open_changeable(kernel, name.interface, now.set));
    }
    if (request.change == KeyChange::erase)
        open.notes->erase();
    else
        open.notes->insert(
            request.lifetime ? kernel.boot_time() + static_cast<std::uint64_t>(request.lifetime->count()) : 0,
            request.change == KeyChange::insert_again);
    SIEVE_ASSIGN(changed.report, sieve::change_keys(open.stored, open.filter->lookup(), open.filter->file(),
                                                    open.filter->lines(), entries, request.change,
                                                    observer.progress, open.notes.get()));
    changed.other_end = open.notes->other_end();
    return Change{.changed = std::move(changed),
                  .map_id = now.set.map_id,
                  .prefixes = open.stored.of_prefixes(),
                  .whole = whole};
}

// Those that did not fit, for another try.
Members rest_of(const KeyChangeReport& report, const Members& members, bool prefixes) {
    if (prefixes) return members_of_entries(report.full, members.fields());
    Members rest(members.fields());
    for (const sieve_key& key : report.full) rest.keys.add(key);
    return rest;
}

// Of keys that a later try found in the set: those that the try before it put in count as done. A filter that
// grew of that try's filter has them.
void count_own(const KeyChangeReport& before, KeyChangeReport& later) {
    std::vector<sieve_key> others = before.told;
    others.insert(others.end(), before.full.begin(), before.full.end());
    std::sort(others.begin(), others.end(), key_order);
    later.done += std::erase_if(later.told, [&](const sieve_key& key) {
        return !std::binary_search(others.begin(), others.end(), key, key_order);
    });
}

// The sum of two changes; of what became of keys, only that of the later one if it was the `whole` request.
void add_up(KeysChanged& more, bool whole, KeysChanged& sum) {
    sum.expired += more.expired;
    if (whole) {
        count_own(sum.report, more.report);
        sum.report = std::move(more.report);
        sum.other_end = more.other_end;
        return;
    }
    KeyChangeReport& report = sum.report;
    report.done += more.report.done;
    report.told.insert(report.told.end(), more.report.told.begin(), more.report.told.end());
    report.full = std::move(more.report.full);
    report.keys = more.report.keys;
    report.expected_fpr = more.report.expected_fpr;
    sum.other_end += more.other_end;
}

// When another filter, or none, comes back in the place of the set's.
std::optional<std::chrono::nanoseconds> filter_taken_back_in(Kernel& kernel, const kernel::Hook& hook,
                                                             const TableWithSet& now) {
    const std::optional<kernel::TableInForce> returning = kernel.read_returning(hook);
    if (!returning) return std::nullopt;
    const kernel::SetInForce* before = returning->find(now.set.name);
    if (before != nullptr && before->map_id == now.set.map_id) return std::nullopt;
    return kernel.read_table(hook).probation;
}

} // namespace

Result<ChangeableSet> find_changeable(Kernel& kernel, const HookName& name, const std::string& set) {
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(const TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(const OpenSet open, open_changeable(kernel, name.interface, now.set));
    return ChangeableSet{.point = hook.point,
                         .fields = open.filter->lookup().fields,
                         .prefixes = open.stored.of_prefixes(),
                         .exact = lists_and_changes(open.filter->lookup()),
                         .verified = now.verified(),
                         .taken_back_in = filter_taken_back_in(kernel, hook, now)};
}

Result<KeysChanged> change_keys(Kernel& kernel, const HookName& name, const std::string& set,
                                const Members& members, const KeyRequest& request, const Observer& observer,
                                const Safety& safety) {
    SIEVE_TRY(check_request(request));
    SIEVE_ASSIGN(const ChangeableSet found, find_changeable(kernel, name, set));
    if (found.exact) return change_exact_set(kernel, name, set, members, request, observer, safety);
    SIEVE_ASSIGN(Change change, change_once(kernel, name, set, members, request, observer, safety));
    KeysChanged& changed = change.changed;
    // A larger filter has room for all keys, unless other controllers fill it meanwhile.
    constexpr std::uint32_t most_growths = 32;
    while (request.grow && !changed.report.full.empty() && changed.grown < most_growths) {
        auto grown = grow_set(kernel, name, set, members.fields(), observer, changed.report.full);
        if (!grown && changed.report.done == 0) return tl::unexpected(std::move(grown.error()));
        if (!grown) return keys_left(KeysLeft::cannot_grow, grown.error());
        changed.grown++;
        // A filter that came meanwhile, and the one that grew of it, have none of the keys.
        const Lacking lacking{.map_id = grown->from == change.map_id ? grown->to : 0,
                              .members = rest_of(changed.report, members, change.prefixes)};
        auto more = change_once(kernel, name, set, members, request, observer, safety, &lacking);
        if (!more) return keys_left(KeysLeft::refused, more.error());
        const bool in_vain = more->changed.report.done == 0; // others have filled it meanwhile
        add_up(more->changed, more->whole, changed);
        change.map_id = more->map_id;
        change.prefixes = more->prefixes;
        if (in_vain) break;
    }
    return std::move(changed);
}

Result<KeyChangeReport> change_keys(Kernel& kernel, const HookName& hook, const std::string& set,
                                    const KeySet& keys, KeyChange change, const Observer& observer,
                                    const Safety& safety) {
    SIEVE_ASSIGN(KeysChanged changed,
                 change_keys(kernel, hook, set, keys, KeyRequest{.change = change}, observer, safety));
    return std::move(changed.report);
}

} // namespace sieve::control
