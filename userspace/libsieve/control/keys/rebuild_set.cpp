// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/rebuild_set.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/table/hit_marks.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::control {

namespace {

constexpr std::uint64_t least_room = 64;

// In nanoseconds. A table of ends is built for lives of a minute or more, so that short lives do not ask for
// a new table all the time.
constexpr std::uint64_t least_longest_life = 60'000'000'000;

// What the ends in force need.
Result<std::optional<Lifetimes>> lifetimes_of(const OpenTable& open) {
    if (!open.has_ends()) return std::nullopt;
    Lifetimes lifetimes{.longest = least_longest_life, .unit = never_ends};
    std::uint64_t shortest = never_ends;
    const std::uint64_t now = program_now();
    SIEVE_TRY(open.for_each_entry(now, [&](const sieve_key&, std::uint64_t end, bool) {
        if (end <= now || end == never_ends) return;
        lifetimes.longest = std::max(lifetimes.longest, end - now);
        shortest = std::min(shortest, end - now);
    }));
    // It can be no better than it was when they were stated.
    lifetimes.unit = std::max(open.table->delay_of_ends(), tolerated_delay(shortest));
    return lifetimes;
}

// The lives that a table must state to which keys come that live so long. Error: beside the longest of them,
// no table states the ends of these. How long the others were to live, nobody knows: one that is about to end
// may have been there for years, so it keeps no key out.
Result<Lifetimes> with_life(const SeenSet& seen, std::uint64_t life) {
    Lifetimes lifetimes = seen.lifetimes.value_or(Lifetimes{least_longest_life, never_ends});
    lifetimes.longest = std::max(lifetimes.longest, life);
    const std::uint64_t least = kind_of(seen.lookup).exact()->least_delay_of_ends(lifetimes.longest);
    lifetimes.unit = std::min(lifetimes.unit, tolerated_delay(life));
    if (least <= longest_delay(life)) return lifetimes;
    const auto seconds = [](std::uint64_t time) { return (time + 999'999'999) / 1'000'000'000; };
    return invalid_request(fmt::format("set {}: it has keys that end in {} s, and beside them, keys that end "
                                       "in {} s would end up to {} s late; "
                                       "expected lives that differ less, or a set of its own for one sort",
                                       seen.name, seconds(lifetimes.longest), seconds(life), seconds(least)));
}

Result<Image> build_larger(const SeenSet& seen, const KeySet& coming,
                           const std::optional<Lifetimes>& lifetimes, const Observer& observer) {
    BuildOptions options;
    options.kind.kind = static_cast<sieve_kind>(seen.lookup.kind);
    options.label = reinterpret_cast<const char*>(seen.file.label);
    Members members(seen.keys, {});
    members.keys.append(coming);
    options.spare = {.room = least_room + members.keys.size() / 4,
                     .lifetimes = lifetimes,
                     .hits = kind_of(seen.lookup).exact()->has_marks(seen.lookup)};
    SIEVE_ASSIGN(BuiltSet built, build_set(std::move(members), options, observer.progress));
    sieve_file& file = built.image.file();
    std::copy(std::begin(seen.file.identity), std::end(seen.file.identity), std::begin(file.identity));
    return std::move(built.image);
}

std::vector<sieve_key> sorted(const KeySet& keys) {
    std::vector<sieve_key> all;
    all.reserve(keys.size());
    keys.for_each(0, keys.size(), [&](const sieve_key& key) { all.push_back(key); });
    std::sort(all.begin(), all.end(), key_order);
    return all;
}

KeySet without(const std::vector<sieve_key>& keys, const std::vector<sieve_key>& others,
               std::uint32_t fields) {
    KeySet rest(fields);
    std::vector<sieve_key> difference;
    std::set_difference(keys.begin(), keys.end(), others.begin(), others.end(),
                        std::back_inserter(difference), key_order);
    for (const sieve_key& key : difference) rest.add(key);
    return rest;
}

// Does to the new table, which no packet meets yet, what was done to the one in force since it was read.
// False: the new table has no room for it.
Result<bool> follow(const SeenSet& seen, const OpenTable& now, const OpenTable& fresh) {
    const std::uint32_t fields = seen.lookup.fields;
    SIEVE_ASSIGN(const KeySet listed, now.list());
    const std::vector<sieve_key> before = sorted(seen.keys), after = sorted(listed);
    KeySet removed = without(before, after, fields), added(fields);
    const KeySet came = without(after, before, fields);
    // A key that is to come may have come already, or be gone again: then it stays.
    came.for_each(0, came.size(), [&](const sieve_key& key) {
        if (!fresh.table->contains(key)) added.add(key);
    });
    SIEVE_ASSIGN(const TableChangeResult did, fresh.table->change(removed, added, [] { return Status(); }));
    return did.full.empty();
}

// Gives the keys of the new table, which no packet meets yet, the ends that they have in the one in force,
// and those to come theirs.
Status copy_ends(const OpenTable& now, const OpenTable& fresh, const KeySet& coming,
                 std::optional<std::uint64_t> life) {
    if (!fresh.has_ends()) return {};
    const std::uint64_t time = program_now();
    Status done;
    SIEVE_TRY(now.for_each_entry(time, [&](const sieve_key& key, std::uint64_t end, bool) {
        if (done && end > time && end != never_ends) done = fresh.table->set_end(key, end);
    }));
    const std::uint64_t end = life ? time + *life : never_ends;
    coming.for_each(0, coming.size(), [&](const sieve_key& key) {
        const std::uint64_t before = now.table->end_of(key).value_or(0);
        if (done) done = fresh.table->set_end(key, std::max(before, end));
    });
    return done;
}

} // namespace

Result<SeenSet> see_set(const kernel::Hook& hook, const kernel::SetInForce& set, const OpenTable& open) {
    SIEVE_ASSIGN(KeySet keys, open.list());
    SIEVE_ASSIGN(const std::optional<Lifetimes> lifetimes, lifetimes_of(open));
    return SeenSet{.hook = {.interface = hook.interface.name, .point = hook.point},
                   .name = set.name,
                   .map_id = set.map_id,
                   .exact_id = set.exact_id,
                   .lookup = open.filter->lookup(),
                   .file = open.filter->file(),
                   .keys = std::move(keys),
                   .lifetimes = lifetimes};
}

Result<std::optional<Rebuilt>> rebuild_with(Kernel& kernel, const SeenSet& seen, const KeySet& coming,
                                            std::optional<std::uint64_t> life, Held lock,
                                            const Observer& observer, const Safety& safety) {
    std::optional<Lifetimes> lifetimes = seen.lifetimes;
    if (life) {
        SIEVE_ASSIGN(lifetimes, with_life(seen, *life));
    }
    std::optional<ReadySet> built;
    // While the kernel takes the program of the trial.
    const auto make = [&]() -> Result<std::vector<const ReadySet*>> {
        SIEVE_ASSIGN(Image image, build_larger(seen, coming, lifetimes, observer));
        built.emplace(ReadySet{.name = seen.name, .image = std::move(image), .maps = {}});
        SIEVE_ASSIGN(built->maps, kernel.bring_in(built->image, nullptr, seen.name, 0));
        return std::vector<const ReadySet*>{&*built};
    };
    SIEVE_ASSIGN(const std::unique_ptr<Trial> trial, kernel.start_trial(*seen.hook.point, false, make));
    const ReadySet& ready = *built;
    SIEVE_TRY(trial->test(0, ready));

    if (!lock) {
        SIEVE_ASSIGN(lock, hold_lock(kernel, observer));
    }
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, seen.hook));
    SIEVE_ASSIGN(TableWithSet now, table_with(kernel, hook, seen.name));
    if (now.set.map_id != seen.map_id || now.set.exact_id != seen.exact_id) return std::optional<Rebuilt>();
    const std::vector<sieve_key> entries = sorted(coming);
    SIEVE_TRY(refuse_lockout(
        kernel, hook, ComingKeys{.map_id = now.set.map_id, .fields = seen.lookup.fields, .entries = entries},
        safety));
    SIEVE_ASSIGN(const OpenTable open, open_table(kernel, seen.name, now.set.map_id));
    SIEVE_ASSIGN(const OpenTable fresh, open_table(kernel, seen.name, ready.maps.filter_id));
    if (open.filter->file().changes != seen.file.changes) {
        SIEVE_ASSIGN(const bool followed, follow(seen, open, fresh));
        if (!followed) return std::optional<Rebuilt>();
    }
    SIEVE_TRY(copy_ends(open, fresh, coming, life));
    sieve_file& file = fresh.filter->file();
    file.changes = open.filter->file().changes + coming.size();
    kernel::WantedSet& wanted = now.table.sets[now.index];
    wanted.map_fd = ready.maps.filter_fd;
    wanted.keep_inserted = true;
    wanted.found_once = sieve_is_one_address(seen.lookup.fields) != 0;
    const std::uint64_t delay = fresh.table->delay_of_ends();
    const Rebuilt rebuilt{.keys = file.keys, .late = lifetimes && delay > lifetimes->unit ? delay : 0};
    SIEVE_TRY(replace_keeping_hits(kernel, hook, {&ready, 1},
                                   [&] { return kernel.replace_table(hook, now.table); }));
    return std::optional(rebuilt);
}

} // namespace sieve::control
