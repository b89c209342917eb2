// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/event_ring.hpp"

#include <cerrno>
#include <ctime>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "libsieve/kernel/host/grace_period.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/map_indices.hpp"
#include "libsieve/kernel/maps/stats.hpp"

namespace sieve::kernel {

namespace {

constexpr int visitor_is_done = -ECANCELED;

int visit_sample(void* context, void* data, std::size_t size) {
    const auto& visit = *static_cast<EventRing::Visit*>(context);
    if (size < sizeof(sieve_event)) return 0;
    return visit(*static_cast<const sieve_event*>(data)) ? 0 : visitor_is_done;
}

std::uint64_t now(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

} // namespace

std::uint64_t wall_clock(std::uint64_t monotonic) {
    return now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC) + monotonic;
}

void EventRing::Free::operator()(ring_buffer* ring) const {
    ring_buffer__free(ring);
}

Result<EventRing> EventRing::start(const Instance& instance, const Sampling& sampling, Visit visit,
                                   std::uint32_t bytes) {
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "sieve_ring", 0, 0, bytes, nullptr));
    if (!fd) return refusal("a BPF ring buffer for events", errno);
    SIEVE_ASSIGN(const std::uint32_t id, map_id(fd.get()));
    EventRing events(instance, std::move(fd), id, std::make_unique<Visit>(std::move(visit)));
    events.ring_.reset(ring_buffer__new(events.fd_.get(), visit_sample, events.visit_.get(), nullptr));
    if (!events.ring_) return refusal("mapping the ring buffer for events", errno);
    SIEVE_ASSIGN(const Stats stats, read_stats(instance));
    events.lost_before_ = stats.events_lost;
    SIEVE_ASSIGN(const UniqueFd outer, open_map(instance.rare().events));
    SIEVE_TRY(put_maps(outer.get(), {.indices = {0}, .ids = {id}, .gone = {}}));
    volatile sieve_control& control = instance.control();
    control.ring_id = id;
    control.sample = sampling.sample;
    control.watch = (control.watch & ~std::uint32_t{SIEVE_WATCH_SAMPLED}) | sampling.which;
    return events;
}

Status EventRing::poll(int milliseconds) {
    const int got = ring_buffer__poll(ring_.get(), milliseconds);
    if (got < 0 && got != -EINTR && got != visitor_is_done) return refusal("reading events", got);
    return {};
}

bool EventRing::in_place() const {
    return instance_->control().ring_id == id_;
}

Status EventRing::stop() {
    if (!in_place()) return {};
    volatile sieve_control& control = instance_->control();
    control.watch = control.watch & ~std::uint32_t{SIEVE_WATCH_SAMPLED};
    control.sample = 0;
    control.ring_id = 0;
    SIEVE_ASSIGN(const UniqueFd outer, open_map(instance_->rare().events));
    SIEVE_TRY(clear_map(outer.get(), 0));
    return grace_period(); // after this, the last sample is in the ring
}

Result<std::uint64_t> EventRing::lost() const {
    SIEVE_ASSIGN(const Stats stats, read_stats(*instance_));
    return stats.events_lost - lost_before_;
}

} // namespace sieve::kernel
