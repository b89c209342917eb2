// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Who works for whoever asks for lists, how much of it, and how a child is started under these settings.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <tl/expected.hpp>

#include "libsieve/service/download/sandbox_limits.hpp"
#include "libsieve/service/sandbox/child.hpp"
#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

struct SandboxSettings {
    SandboxLimits limits{};
    SandboxUser user{};
    std::function<Result<ChildEnd>(const ChildOrder&)> run = run_child; // has a child follow an order
    ChildStarted started{}; // called before the child's work is waited for
    // Of downloading, reading and building, by several threads at once; empty: nobody wants to know.
    Progress progress{};
    int cancel = -1; // a descriptor that becomes readable when the work is to be given up; -1: none
};

// With the user that find_sandbox_user() finds, for a caller who may become another user; else as the caller.
[[nodiscard]] Result<SandboxSettings> standard_sandbox();

// A child of the order's role, as the settings' user and within their limits. `descriptors` are borrowed.
[[nodiscard]] ChildOrder child_for(const SandboxSettings& settings, const AnyOrder& order,
                                   std::vector<int> descriptors);

// Has the child follow its order to the end. A failure says what became of `who`, such as "building": it
// took too long, was ended by a signal, or needs more memory than it may have. Failures that the child
// reports come as they are.
template <class Done>
[[nodiscard]] tl::expected<Done, GatherFailure> run_to_end(const SandboxSettings& settings,
                                                           const ChildOrder& child, std::string_view who) {
    const auto failed = [](Error error) { return tl::unexpected(GatherFailure{std::move(error), {}}); };
    const Result<ChildEnd> end = settings.run(child);
    if (!end) return failed(end.error());
    if (end->report.empty() || end->way != ChildEnd::Way::exited || end->number != 0)
        return failed(
            {ErrorKind::bad_input, fmt::format("{} {}", who, describe(*end, child, settings.limits)), {}});
    auto done = read_report<Done>(end->report);
    if (!done && done.error().error.kind == ErrorKind::out_of_memory && settings.limits.memory_bytes != 0)
        done.error().error.message = fmt::format("{} needs more memory than its limit of {} MiB{}", who,
                                                 settings.limits.memory_bytes >> 20,
                                                 end->at.empty() ? std::string() : " while " + end->at);
    return done;
}

} // namespace sieve::service
