// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/bounded_host_addresses.hpp"

namespace sieve::service {

BoundedHostAddresses::BoundedHostAddresses(HostAddresses& host, std::chrono::milliseconds patience)
    : deadline_(std::chrono::steady_clock::now() + patience),
      answer_(std::async(std::launch::async, [&host] { return host.read(); })) {}

Result<std::vector<HostAddress>> BoundedHostAddresses::read() {
    if (answer_.wait_until(deadline_) == std::future_status::ready) return answer_.get();
    late_ = true;
    return std::vector<HostAddress>();
}

} // namespace sieve::service
