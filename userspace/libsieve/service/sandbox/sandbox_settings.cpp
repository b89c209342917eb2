// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/sandbox_settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <variant>

namespace sieve::service {

namespace {

constexpr ChildRole role_of(const FetchOrder&) {
    return ChildRole::fetch;
}
constexpr ChildRole role_of(const TaskOrder&) {
    return ChildRole::fetch;
}
constexpr ChildRole role_of(const CommandOrder&) {
    return ChildRole::command;
}
template <class Order>
constexpr ChildRole role_of(const Order&) {
    return ChildRole::build;
}

} // namespace

Result<SandboxSettings> standard_sandbox() {
    SandboxSettings settings;
    if (::geteuid() != 0) return settings;
    SIEVE_ASSIGN(settings.user, find_sandbox_user());
    return settings;
}

ChildOrder child_for(const SandboxSettings& settings, const AnyOrder& order, std::vector<int> descriptors) {
    const SandboxLimits& limits = settings.limits;
    const ChildRole role = std::visit([](const auto& one) { return role_of(one); }, order);
    const bool builds = role == ChildRole::build;
    const Confinement confinement{.role = role,
                                  .user = settings.user,
                                  .memory_bytes = limits.memory_bytes,
                                  .file_bytes = builds ? std::max(limits.image_bytes, limits.unpacked_bytes)
                                                       : limits.source_bytes,
                                  .processor = limits.processor,
                                  // The child opens few, and those that it is given must fit.
                                  .descriptors = static_cast<std::uint32_t>(64 + 3 * descriptors.size()),
                                  .nice = limits.nice,
                                  .parent = ::getpid()};
    ChildOrder child;
    child.role = role;
    child.message = write_order({confinement, order});
    child.descriptors = std::move(descriptors);
    child.time_limit = builds ? limits.build : limits.fetch;
    // libcurl ends a download itself, and says more about it.
    if (role == ChildRole::fetch) child.time_limit += std::chrono::seconds(10);
    child.started = settings.started;
    child.progress = settings.progress;
    child.cancel = settings.cancel;
    return child;
}

} // namespace sieve::service
