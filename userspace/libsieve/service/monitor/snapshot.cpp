// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/snapshot.hpp"

#include <algorithm>
#include <utility>

namespace sieve::service::watching {

namespace {

HookSnapshot snapshot_of(control::Sample sample, const Statistics& statistics) {
    HookSnapshot hook;
    hook.id = {sample.interface, sample.point};
    hook.totals = statistics.totals(hook.id);
    for (const control::SetStatus& set : sample.table.sets)
        hook.sets.push_back({.status = set,
                             .totals = statistics.totals(hook.id, set.set.name),
                             .verified = sample.verified(set)});
    hook.sample = std::move(sample);
    return hook;
}

std::vector<WantedHook> wanted_hooks(const Snapshot& snapshot) {
    std::vector<WantedHook> wanted;
    for (const InterfaceConfiguration& entry : snapshot.record.configuration.interfaces) {
        if (entry.is_pattern()) continue;
        const HookId id{entry.name, entry.hook};
        wanted.push_back(
            {.id = id, .up = snapshot.find(id) != nullptr, .paused = snapshot.record.paused.contains(id)});
    }
    for (const HookId& id : snapshot.record.paused)
        if (std::ranges::none_of(wanted, [&](const WantedHook& hook) { return hook.id == id; }))
            wanted.push_back({.id = id, .up = snapshot.find(id) != nullptr, .paused = true});
    return wanted;
}

} // namespace

const HookSnapshot* Snapshot::find(const HookId& id) const {
    const auto found =
        std::find_if(hooks.begin(), hooks.end(), [&](const HookSnapshot& hook) { return hook.id == id; });
    return found == hooks.end() ? nullptr : &*found;
}

Snapshot take_snapshot(control::Kernel& kernel, Statistics& statistics, std::size_t top,
                       Clock::time_point at) {
    const auto begin = std::chrono::steady_clock::now();
    Snapshot snapshot;
    snapshot.at = at;
    auto samples = statistics.observe(kernel, at);
    if (samples) {
        for (control::Sample& sample : *samples) {
            snapshot.hooks.push_back(snapshot_of(std::move(sample), statistics));
            HookSnapshot& hook = snapshot.hooks.back();
            if (top == 0) continue;
            // An error says that no keys are counted there.
            if (auto keys = control::read_top_keys(kernel, {hook.id.interface, hook.id.point}, top))
                hook.top_keys = std::move(*keys);
        }
    } else {
        snapshot.error = std::move(samples.error().message);
    }
    snapshot.record = statistics.record();
    snapshot.wanted = wanted_hooks(snapshot);
    snapshot.process = read_process_usage();
    snapshot.reading = std::chrono::steady_clock::now() - begin;
    return snapshot;
}

std::chrono::seconds asked_every(const SetConfiguration& set) {
    const CrowdsecSpec* const stream = followed_stream(set);
    return stream != nullptr ? stream->poll : set.refresh;
}

std::optional<std::uint64_t> entries_of(const SetHistory& set) {
    if (!set.last_good) return std::nullopt;
    return set.live_entries.value_or(set.last_good->entries);
}

std::optional<Clock::time_point> last_confirmed(const SetHistory& set) {
    if (set.confirmed) return set.confirmed;
    if (!set.last_good) return std::nullopt;
    std::int64_t read = set.last_good->built_at;
    for (const SourceProvenance& source : set.last_good->sources) read = std::max(read, source.asked);
    return Clock::time_point(std::chrono::seconds(read));
}

} // namespace sieve::service::watching
