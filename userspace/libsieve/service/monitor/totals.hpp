// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Counters that never go back: the kernel's counters, added up over everything that makes those start anew.
//
// what happens                           the kernel's counters         what is lost here
// a set gets another filter              go on; `verified` goes on,    nothing
//                                        with a new baseline
// a set leaves, and comes back           go on in a slot that another  nothing, unless the slot changes hands
//                                        set may have next             twice between two observations
// a program leaves, another comes        start at zero                 packets after the last observation
// this process ends, another starts      go on                         nothing
// the machine restarts                   start at zero                 everything: totals start at zero, too
//
// Therefore a caller observes often, and before it takes a program away. It keeps text() for its successor.
// After a restart of the machine a total could not be exact, and one that fell would be taken for a new one
// and be counted twice; one that starts at zero is understood by everybody who reads counters.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <sieve/policy.h>

#include "libsieve/control/query/sample.hpp"
#include "libsieve/kernel/programs/hook_point.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::watching {

// One hook of one interface.
struct HookId {
    std::string interface {};
    kernel::HookPoint point = kernel::HookPoint::xdp;

    [[nodiscard]] friend auto operator<=>(const HookId&, const HookId&) = default;
};

// What a hook's programs have counted, all together.
struct HookTotals {
    sieve_counter passed{};
    sieve_counter dropped{};
    sieve_counter redirected{};
    sieve_counter replied{}; // of the passed ones: they would have been dropped, but answer own flows
    std::uint64_t redirect_failed = 0;
    std::uint64_t events_lost = 0;
    std::array<std::uint64_t, SIEVE_OUTCOMES> outcome{};
};

// What was counted for a set of that name at a hook.
struct SetTotals {
    sieve_counter matches{};
    sieve_verified verified{}; // 0 as long as matches are not verified
};

class Totals {
  public:
    // Adds what was counted since the last observation. `now` is in seconds since 1970. Returns true if
    // something started anew, so that the totals can no longer be told from the kernel's counters and text()
    // as it was.
    bool observe(const std::vector<control::Sample>& samples, std::int64_t now);

    // Zero for what was never observed.
    [[nodiscard]] HookTotals hook(const HookId& hook) const;
    [[nodiscard]] SetTotals set(const HookId& hook, const std::string& set) const;

    // All of this as JSON text, and back. `boot` names the present run of the machine: text of an earlier one
    // is as good as none. Error: bad_input, if the text is none of text()'s.
    [[nodiscard]] std::string text(const std::string& boot) const;
    [[nodiscard]] static Result<Totals> read(const std::string& text, const std::string& boot);

  private:
    struct HookState {
        std::uint32_t program_id = 0; // 0: none was there at the last observation
        HookTotals raw{};             // the program's counters at the last observation
        HookTotals total{};
        std::int64_t seen = 0; // seconds since 1970
    };
    struct SetState {
        std::uint32_t program_id = 0; // 0: the set was not in force at the last observation
        std::uint32_t slot = 0;
        sieve_counter baseline{};
        SetTotals raw{}; // the slot's counters at the last observation
        SetTotals total{};
        std::int64_t seen = 0;
    };
    using SetKey = std::pair<HookId, std::string>;

    bool observe_hook(const HookId& hook, const control::Sample& sample, std::int64_t now);
    bool observe_sets(const HookId& hook, const control::Sample& sample, std::int64_t now);
    static void finish(SetState& set, const control::Sample& sample);
    void forget_oldest();

    std::map<HookId, HookState> hooks_;
    std::map<SetKey, SetState> sets_;
};

} // namespace sieve::service::watching
