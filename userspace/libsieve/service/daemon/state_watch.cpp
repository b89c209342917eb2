// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/state_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/state/pauses.hpp"
#include "libsieve/service/state/refusals.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

Result<std::unique_ptr<StateWatch>> StateWatch::start(EventLoop& loop, const std::string& state,
                                                      Changed changed) {
    std::unique_ptr<StateWatch> watch(new StateWatch(std::move(changed)));
    watch->inotify_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!watch->inotify_) return failure(ErrorKind::out_of_memory, "inotify_init1: " + errno_text(errno));
    if (::inotify_add_watch(watch->inotify_.get(), state.c_str(),
                            IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR) < 0)
        return kernel_refused(
            fmt::format("state directory {}: cannot be watched: {}", printable(state), errno_text(errno)));
    SIEVE_ASSIGN(watch->source_,
                 loop.on_readable(watch->inotify_.get(), [watch = watch.get()] { watch->read(); }));
    return watch;
}

void StateWatch::read() {
    alignas(inotify_event) std::array<char, 4096> buffer;
    bool pauses = false;
    bool refusals = false;
    for (;;) {
        const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        for (ssize_t at = 0; at < got;) {
            const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
            const bool missed = (event->mask & IN_Q_OVERFLOW) != 0;
            pauses = pauses || missed || (event->len > 0 && is_pause_file(event->name));
            refusals = refusals || missed || (event->len > 0 && refused_set_of(event->name));
            at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        }
    }
    if (pauses) changed_.pauses();
    if (refusals) changed_.refusals();
}

} // namespace sieve::service
