// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/listen.hpp"

#include <memory>

#include "libsieve/control/hold_lock.hpp"
#include "libsieve/kernel/event_ring.hpp"

namespace sieve::control {

namespace {

constexpr int wait_milliseconds = 100;

Event named(const sieve_event& raw, const kernel::TableInForce& table) {
    Event event{.time = kernel::wall_clock(raw.time),
                .verdict = raw.verdict,
                .by_default = raw.decision == SIEVE_NO_SET,
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
    Status done;
    while (wants_more() && stream->in_place()) {
        const Result<bool> go_on = listener.go_on();
        if (!go_on) done = tl::unexpected(go_on.error());
        if (!go_on || !*go_on) break;
        done = poll(wait_milliseconds);
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
