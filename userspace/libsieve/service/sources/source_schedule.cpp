// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/source_schedule.hpp"

#include <algorithm>

namespace sieve::service::live {

namespace {

// Heals whatever differences got lost, such as decisions that another client with the same key was given.
constexpr std::chrono::hours whole_list_interval{1};

} // namespace

SourceSchedule::SourceSchedule(std::chrono::milliseconds poll) : poll_(poll) {
    limits_.first = std::min<std::chrono::milliseconds>(poll, std::chrono::seconds(10));
    limits_.most = std::max<std::chrono::milliseconds>(poll, std::chrono::minutes(1));
}

SourceSchedule SourceSchedule::of_lists(std::chrono::milliseconds refresh) {
    SourceSchedule schedule(refresh);
    schedule.limits_ = BackoffLimits();
    schedule.limits_.most = std::min(schedule.limits_.most, refresh);
    schedule.limits_.most_asked_for = schedule.limits_.most;
    schedule.spread_ = 0.1;
    return schedule;
}

SourceSchedule::Fetch SourceSchedule::next_fetch(Time now) const {
    return in_step_ && now < whole_list_due_ ? Fetch::difference : Fetch::whole_list;
}

void SourceSchedule::taken(Fetch fetch, Time now, double chance) {
    if (fetch == Fetch::whole_list) whole_list_due_ = now + whole_list_interval;
    in_step_ = true;
    failures_ = 0;
    next_ = now + jittered(poll_, chance, spread_);
}

void SourceSchedule::restart(Time now) {
    in_step_ = false;
    next_ = now;
}

void SourceSchedule::failed(Time now, double chance, std::optional<std::chrono::seconds> retry_after) {
    failures_++;
    in_step_ = false;
    next_ = now + backoff_delay(failures_, chance, retry_after, limits_);
}

} // namespace sieve::service::live
