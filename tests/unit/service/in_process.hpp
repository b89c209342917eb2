// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Refreshes whose children's work is done in this process, so that tests of what surrounds it need no
// children. tests/service has the tests with real ones.
#pragma once

#include "libsieve/service/sandbox/child_work.hpp"
#include "libsieve/service/sources/gather.hpp"

namespace sieve::test {

inline Result<service::ChildEnd> work_in_process(const service::ChildOrder& child) {
    using namespace service;
    const auto reported = [](const auto& done) {
        ChildEnd end;
        end.report = done ? write_report(*done) : write_failure(done.error());
        return end;
    };
    SIEVE_ASSIGN(const ConfinedOrder order, read_order(child.message));
    const auto tell = [](const std::string&) {};
    if (const auto* read = std::get_if<ReadOrder>(&order.order))
        return reported(read_lists(*read, child.descriptors, tell));
    if (const auto* build = std::get_if<BuildOrder>(&order.order))
        return reported(build_filter(*build, child.descriptors, tell));
    if (const auto* join = std::get_if<JoinOrder>(&order.order))
        return reported(join_lists(*join, child.descriptors, tell));
    return bad_input("this test has no such child");
}

inline service::SandboxSettings in_process() {
    service::SandboxSettings settings;
    settings.run = work_in_process;
    return settings;
}

} // namespace sieve::test
