// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/grow_set.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sieve/exact.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/control/changeable_set.hpp"
#include "libsieve/control/hold_lock.hpp"
#include "libsieve/keys/key_order.hpp"

namespace sieve::control {

namespace {

constexpr int attempts = 3;
constexpr double most_bits_per_key = 256; // that the builder takes
constexpr double least_bits_per_key = 48; // as live sets have after a rebuild (docs/live-changes.md)
constexpr std::uint64_t rate_trials = 100'000;

// What the set was when its keys were read.
struct Seen {
    kernel::HookPoint point = kernel::HookPoint::xdp;
    kernel::SetInForce set;
    std::uint64_t changes = 0;
    sieve_lookup lookup{};
    std::uint64_t lines = 0;
    std::string label{};
    std::vector<sieve_key> keys{}; // ascending
};

// Holds the lock meanwhile: a change counts itself in the filter's header before its last note, so a reader
// in between would take the key for one that is in doubt, and the count for one that includes it.
Result<Seen> see(Kernel& kernel, const HookName& name, const std::string& set, const Observer& observer) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(const TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(const OpenSet open, open_changeable(kernel, name.interface, now.set));
    if (!now.verified())
        return invalid_request(
            fmt::format("set {} is not verified, so nobody knows its keys, and it cannot grow "
                        "by itself: build a larger one and swap",
                        set));
    Seen seen{.point = hook.point,
              .set = now.set,
              .changes = open.filter->file().changes,
              .lookup = open.filter->lookup(),
              .lines = open.filter->lines().size(),
              .label = reinterpret_cast<const char*>(open.filter->file().label)};
    SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> exact, kernel.open_exact(now.set.exact_id));
    SIEVE_ASSIGN(const std::vector<kernel::NotedKey> all, exact->all());
    for (const kernel::NotedKey& one : all)
        if (one.note.state == SIEVE_EXACT_IN) seen.keys.push_back(one.key);
    std::sort(seen.keys.begin(), seen.keys.end(), key_order);
    return seen;
}

Result<Image> build_larger(const Seen& seen, const Observer& observer) {
    KeySet keys(seen.lookup.fields);
    for (const sieve_key& key : seen.keys) keys.add(key);
    BuildOptions options;
    options.kind.kind = static_cast<sieve_kind>(seen.lookup.kind);
    const double twice = 2.0 * SIEVE_LINE_BITS * static_cast<double>(seen.lines) /
                         static_cast<double>(std::max<std::size_t>(1, seen.keys.size()));
    options.bits_per_key = std::clamp(twice, least_bits_per_key, most_bits_per_key);
    options.label = seen.label;
    options.trials = rate_trials;
    SIEVE_ASSIGN(BuiltSet built, build_set(std::move(keys), options, observer.progress));
    return std::move(built.image);
}

} // namespace

Status grow_set(Kernel& kernel, const HookName& name, const std::string& set, const Observer& observer) {
    for (int attempt = 0; attempt < attempts; attempt++) {
        SIEVE_ASSIGN(const Seen seen, see(kernel, name, set, observer));
        SIEVE_ASSIGN(Image image, build_larger(seen, observer));
        ReadySet ready{.name = set, .image = std::move(image), .maps = {}};
        const auto make = [&]() -> Result<std::vector<const ReadySet*>> {
            SIEVE_ASSIGN(ready.maps, kernel.bring_in(ready.image, &seen.keys, set));
            return std::vector<const ReadySet*>{&ready};
        };
        SIEVE_ASSIGN(const std::unique_ptr<Trial> trial, kernel.start_trial(seen.point, false, make));
        SIEVE_TRY(trial->test(0, ready));

        SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
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
        return kernel.replace_table(hook, now.table);
    }
    return failure(
        ErrorKind::changed_meanwhile,
        fmt::format("set {} was changed again and again while a larger filter was being built", set),
        {.interface = name.interface, .set = set});
}

} // namespace sieve::control
