// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/listen.hpp"

#include <memory>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/kernel/maps/event_ring.hpp"

namespace sieve::control {

namespace {

constexpr int wait_milliseconds = 100;
constexpr int waits_per_look = 10; // that brought nothing, until the next look at the hook

Event named(const sieve_event& raw, const kernel::TableInForce& table) {
    Event event{.time = kernel::wall_clock(raw.time),
                .verdict = raw.verdict,
                .by_default = raw.decision == SIEVE_NO_SET,
                .reply = raw.decision == SIEVE_REPLY,
                .length = raw.length,
                .key = raw.key,
                .have = raw.have,
                .head = {raw.head, raw.captured}};
    for (const kernel::SetInForce& set : table.sets) {
        if ((raw.hits >> set.slot & 1) != 0) event.sets.push_back(set.name);
        if ((raw.rejected >> set.slot & 1) != 0) event.rejected.push_back(set.name);
        if (set.slot == raw.decision) event.decided_by = set.name;
    }
    return event;
}

// Whether the hook still runs the program that it ran when it was read.
Result<bool> still_runs(Kernel& kernel, const kernel::Hook& before) {
    const Result<kernel::Hook> now = kernel.read_hook(before.interface, before.point);
    if (now) return now->ours && now->ours->id == before.ours->id;
    const Result<kernel::Interface> interface = kernel.find_interface(before.interface.name);
    if (!interface || interface->index != before.interface.index) return false; // it has gone
    return tl::unexpected(now.error());
}

} // namespace

Result<Heard> listen(Kernel& kernel, const HookName& name, const ListenOptions& options,
                     const Listener& listener, const Observer& observer) {
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
    Heard heard{.point = hook.point};
    kernel::TableInForce table;
    const auto wants_more = [&] { return options.most == 0 || heard.events < options.most; };
    const auto visit = [&](const sieve_event& event) {
        listener.event(named(event, table));
        heard.events++;
        return wants_more();
    };
    std::unique_ptr<EventStream> stream;
    // Slots get other names whenever the table changes.
    const auto poll = [&](int milliseconds) {
        table = kernel.read_table(hook);
        return stream->poll(milliseconds);
    };
    {
        SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
        SIEVE_ASSIGN(stream, kernel.start_events(hook, options.sampling, visit));
    }
    // A program that is gone brings no events, so only waits in vain ask for a look at the hook.
    int vain_waits = 0;
    const auto wait = [&]() -> Status {
        const std::uint64_t before = heard.events;
        SIEVE_TRY(poll(wait_milliseconds));
        if (heard.events != before || ++vain_waits % waits_per_look != 0) return {};
        SIEVE_ASSIGN(const bool runs, still_runs(kernel, hook));
        heard.gone = !runs;
        return {};
    };
    Status done;
    while (wants_more() && stream->in_place() && !heard.gone) {
        const Result<bool> go_on = listener.go_on();
        if (!go_on) done = tl::unexpected(go_on.error());
        if (!go_on || !*go_on) break;
        done = wait();
        if (!done) break;
    }
    heard.taken_over = !stream->in_place();
    {
        // Sampling must not go on without a listener, even after an error.
        SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
        SIEVE_TRY(stream->stop());
    }
    SIEVE_TRY(done);
    if (wants_more()) SIEVE_TRY(poll(0)); // events from before sampling was off
    SIEVE_ASSIGN(heard.lost, stream->lost());
    return heard;
}

} // namespace sieve::control
