// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A view of some keys of etcd that stays true: it reads them, watches from that revision on, and reads them
// again whenever the watch ends. So compaction, reconnection and an etcd that lost its data all end in the
// same way.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "libsieve/fleet/servers/etcd_client.hpp"
#include "libsieve/service/sources/backoff.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct ViewOptions {
    // A watch on a connection that broke unseen is renewed after so long; a fifth of it is drawn, so that
    // many nodes do not come at once.
    std::chrono::milliseconds longest_watch{std::chrono::minutes(5)};
    service::BackoffLimits backoff{.first = std::chrono::milliseconds(500), .most = std::chrono::seconds(30)};
};

struct ViewListener {
    // All keys, first and after each change. False ends the view.
    std::function<bool(const EtcdKeys& keys)> changed{};
    // The keys were read, changed or not.
    std::function<void()> answered{};
    // etcd could not be asked, so often in a row; the view goes on.
    std::function<void(const Error& error, unsigned failures)> trouble{};
};

// Follows the keys with this beginning until the listener says false or the client is cancelled.
void follow_keys(EtcdClient& client, const std::string& prefix, const ViewOptions& options,
                 const ViewListener& listener);

} // namespace sieve::fleet
