// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "bpf/shared_program.hpp"

#include <cstring>
#include <map>
#include <utility>

#include "bpf/images.hpp"
#include "libsieve/kernel/maps/stats.hpp"

namespace sieve::test {

namespace {

struct Shared {
    kernel::Scratch program;
    sieve_control as_loaded;
};

sieve_control& control_of(const kernel::Scratch& program) {
    return const_cast<sieve_control&>(program.instance().control()); // no packet comes meanwhile
}

Shared load(kernel::HookPoint point) {
    Shared shared{.program = value_or_fail(kernel::Scratch::load(true, point)), .as_loaded = {}};
    shared.as_loaded = control_of(shared.program);
    return shared;
}

} // namespace

kernel::Scratch& shared_program(kernel::HookPoint point) {
    static std::map<kernel::HookPoint, Shared> programs;
    auto at = programs.find(point);
    if (at == programs.end()) at = programs.emplace(point, load(point)).first;
    Shared& shared = at->second;
    sieve_control& control = control_of(shared.program);
    // As if a controller had died, so that the next one looks after all slots of both banks.
    control.active &= SIEVE_BANKS - 1;
    control.changing = 1;
    ok_or_fail(shared.program.table().replace({}));
    ok_or_fail(kernel::clear_stats(shared.program.instance()));
    std::memcpy(&control, &shared.as_loaded, sizeof(control));
    return shared.program;
}

} // namespace sieve::test
