// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/source_schedule.hpp"

#include <algorithm>

namespace sieve::service::live {

namespace {

// Heals whatever differences got lost, such as decisions that another client with the same key was given.
constexpr std::chrono::hours whole_list_interval{1};

} // namespace

SourceSchedule::Fetch SourceSchedule::next_fetch(Time now) const {
    return in_step_ && now < whole_list_due_ ? Fetch::difference : Fetch::whole_list;
}

void SourceSchedule::taken(Fetch fetch, Time now) {
    if (fetch == Fetch::whole_list) whole_list_due_ = now + whole_list_interval;
    in_step_ = true;
    failures_ = 0;
    next_ = now + poll_;
}

void SourceSchedule::restart(Time now) {
    in_step_ = false;
    next_ = now;
}

void SourceSchedule::failed(Time now, double chance, std::optional<std::chrono::seconds> retry_after) {
    failures_++;
    in_step_ = false;
    // The API is a neighbour: its first failures are short ones, such as a restart.
    BackoffLimits limits;
    limits.first = std::min<std::chrono::milliseconds>(poll_, std::chrono::seconds(10));
    limits.most = std::max<std::chrono::milliseconds>(poll_, std::chrono::minutes(1));
    next_ = now + backoff_delay(failures_, chance, retry_after, limits);
}

} // namespace sieve::service::live
