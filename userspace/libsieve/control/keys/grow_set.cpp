// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/grow_set.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sieve/exact.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/keys/changeable_set.hpp"
#include "libsieve/control/keys/exact_entries.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/keys/key_order.hpp"

namespace sieve::control {

namespace {

// The first one leaves the lock free while the larger filter is built, so others may overtake it. The last
// one holds the lock, so that nobody can.
constexpr int attempts = 2;
constexpr double least_bits_per_key = 48; // as live sets have after a rebuild (docs/live-changes.md)
constexpr std::uint64_t rate_trials = 100'000;

// What the set was when its keys were read.
struct Seen {
    kernel::HookPoint point = kernel::HookPoint::xdp;
    kernel::SetInForce set;
    std::uint64_t changes = 0;
    sieve_lookup lookup{};
    sieve_probes probes{};
    std::uint64_t stored = 0; // keys in the filter
    std::uint64_t lines = 0;
    std::string label{};
    std::vector<sieve_key> keys{}; // entries, ascending
};

// The caller holds the lock: a change counts itself in the filter's header before its last note, so a reader
// in between would take the key for one that is in doubt, and the count for one that includes it.
Result<Seen> see(Kernel& kernel, const HookName& name, const std::string& set, std::uint32_t fields) {
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(const TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(const OpenSet open, open_changeable(kernel, name.interface, now.set));
    if (!now.verified() || open.filter->lookup().fields != fields)
        return failure(ErrorKind::changed_meanwhile,
                       fmt::format("set {} was meanwhile replaced by one with other fields or without "
                                   "verification, which was left as it is",
                                   set),
                       {.interface = name.interface, .set = set});
    Seen seen{.point = hook.point,
              .set = now.set,
              .changes = open.filter->file().changes,
              .lookup = open.filter->lookup(),
              .probes = open.filter->probes(),
              .stored = open.filter->file().keys,
              .lines = open.filter->lines().size(),
              .label = reinterpret_cast<const char*>(open.filter->file().label)};
    SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> exact,
                 open_exact_entries(kernel, now.set.exact_id, open.stored));
    SIEVE_ASSIGN(const std::vector<kernel::NotedKey> all, exact->all());
    for (const kernel::NotedKey& one : all)
        if (one.note.state == SIEVE_EXACT_IN) seen.keys.push_back(one.key);
    std::sort(seen.keys.begin(), seen.keys.end(), key_order);
    return seen;
}

// The members of the set. A prefix set keeps its probes.
Members members_of(const Seen& seen, BuildOptions& options) {
    const std::uint32_t fields = seen.lookup.fields;
    if (seen.lookup.probes == 0) {
        Members members(fields);
        for (const sieve_key& key : seen.keys) members.keys.add(key);
        return members;
    }
    options.probes = seen.probes;
    return members_of_entries(seen.keys, fields);
}

// What the set's filter stores for the entries.
std::uint64_t count_stored(const Seen& seen, std::span<const sieve_key> entries) {
    const StoredKeys stored(seen.lookup, seen.probes);
    double keys = 0;
    for (const sieve_key& entry : entries) keys += stored.count(entry);
    return static_cast<std::uint64_t>(std::min(keys, 0x1p40));
}

// The size of the larger filter.
void choose_size(const Seen& seen, std::uint64_t coming, BuildOptions& options) {
    const auto keys = static_cast<double>(std::max<std::uint64_t>(1, seen.stored));
    const double twice = 2.0 * SIEVE_LINE_BITS * static_cast<double>(seen.lines) / keys;
    const double for_coming = least_bits_per_key * (keys + static_cast<double>(coming)) / keys;
    if (for_coming <= most_bits_per_key) {
        options.bits_per_key = std::clamp(std::max(twice, for_coming), least_bits_per_key, most_bits_per_key);
        return;
    }
    const auto lines = static_cast<std::uint64_t>(for_coming * keys / SIEVE_LINE_BITS) + 2 * seen.lines;
    options.memory = (SIEVE_FIRST_LINE + lines + witness_count(seen.stored)) * sizeof(sieve_line);
}

Result<Image> build_larger(const Seen& seen, std::uint64_t coming, const Observer& observer) {
    BuildOptions options;
    options.kind.kind = static_cast<sieve_kind>(seen.lookup.kind);
    choose_size(seen, coming, options);
    options.label = seen.label;
    options.trials = rate_trials;
    Members members = members_of(seen, options);
    SIEVE_ASSIGN(BuiltSet built, build_set(std::move(members), options, observer.progress));
    return std::move(built.image);
}

// The keys of the exact set behind the image.
std::vector<sieve_key> exact_of(const Seen& seen, const Image& image) {
    const StoredKeys stored(image.lookup(), image.probes());
    return stored.of_prefixes() ? exact_of_entries(seen.keys, stored) : seen.keys;
}

} // namespace

Result<Growth> grow_set(Kernel& kernel, const HookName& name, const std::string& set, std::uint32_t fields,
                        const Observer& observer, std::span<const sieve_key> coming) {
    for (int attempt = 1; attempt <= attempts; attempt++) {
        SIEVE_ASSIGN(Held lock, hold_lock(kernel, observer));
        SIEVE_ASSIGN(const Seen seen, see(kernel, name, set, fields));
        if (attempt < attempts) lock.reset();
        const std::uint64_t more = count_stored(seen, coming);
        SIEVE_ASSIGN(Image image, build_larger(seen, more, observer));
        ReadySet ready{.name = set, .image = std::move(image), .maps = {}};
        const std::vector<sieve_key> exact = exact_of(seen, ready.image);
        const auto make = [&]() -> Result<std::vector<const ReadySet*>> {
            SIEVE_ASSIGN(ready.maps, kernel.bring_in(ready.image, &exact, set, coming.size() + more));
            return std::vector<const ReadySet*>{&ready};
        };
        SIEVE_ASSIGN(const std::unique_ptr<Trial> trial, kernel.start_trial(seen.point, false, make));
        SIEVE_TRY(trial->test(0, ready));

        if (!lock) {
            SIEVE_ASSIGN(lock, hold_lock(kernel, observer));
        }
        SIEVE_ASSIGN(const kernel::Hook hook,
                     find_ours(kernel, {.interface = name.interface, .point = seen.point}));
        SIEVE_ASSIGN(TableWithSet now, table_with(kernel, hook, set));
        if (now.set.map_id != seen.set.map_id || now.set.exact_id != seen.set.exact_id) continue;
        SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(now.set.map_id));
        if (filter->file().changes != seen.changes) continue;
        kernel::WantedSet& wanted = now.table.sets[now.index];
        wanted.map_fd = ready.maps.filter_fd;
        wanted.exact_fd = ready.maps.exact_fd;
        wanted.keep_inserted = true;
        SIEVE_TRY(kernel.replace_table(hook, now.table));
        return Growth{.from = seen.set.map_id, .to = ready.maps.filter_id};
    }
    return failure(
        ErrorKind::changed_meanwhile,
        fmt::format("set {} was changed, without the lock among controllers, while a larger filter was being "
                    "built",
                    set),
        {.interface = name.interface, .set = set});
}

} // namespace sieve::control
