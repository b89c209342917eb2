// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/joint_preflight.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "libsieve/kernel/preflight.hpp"
#include "libsieve/kernel/replay.hpp"
#include "libsieve/packets/carrier.hpp"

namespace sieve::kernel {

namespace {

// Of all sets together.
constexpr std::size_t non_members_wanted = 4096;

class Questioning {
  public:
    Questioning(const JointFilter& joint, std::span<const JoinedSet> sets, const Replay& replay)
        : joint_(joint), sets_(sets), replay_(replay) {}

    Status ask_member(std::size_t set, const sieve_key& key) {
        SIEVE_ASSIGN(const std::optional<std::uint32_t> number, ask(key));
        const bool right =
            number && *number <= set && (*number == set || sets_[*number].image->contains(key));
        if (right) return {};
        return bad_input(
            fmt::format("a key of set {} was decided by {} when the kernel asked the joint filter; "
                        "nothing was changed",
                        sets_[set].name, number ? "set " + sets_[*number].name : "no set"));
    }

    // Asks the kernel, whose answer must be that of user space.
    Result<std::optional<std::uint32_t>> ask(const sieve_key& key) {
        SIEVE_ASSIGN(const Replayed replayed, replay_.run(carrier_.carry(key, joint_.fields())));
        const std::optional<std::uint32_t> wanted = joint_.find(key);
        const bool same =
            wanted ? replayed.decided_by != nullptr && replayed.decided_by->name == sets_[*wanted].name
                   : replayed.decided_by == nullptr;
        if (same) return wanted;
        return bad_input(fmt::format(
            "the kernel took {} for the set of a key, and the joint filter says {}; nothing was changed",
            replayed.decided_by != nullptr ? replayed.decided_by->name : "none",
            wanted ? sets_[*wanted].name : "none"));
    }

  private:
    const JointFilter& joint_;
    std::span<const JoinedSet> sets_;
    const Replay& replay_;
    packets::Carrier carrier_;
};

} // namespace

Result<JointReport> preflight_joint(const JointFilter& joint, const FilterMap& map,
                                    std::span<const JoinedSet> sets, HookPoint point) {
    WantedTable table{.default_action = SIEVE_ACTION_PASS, .sets = {}};
    WantedJoint wanted{.map_fd = map.fd(), .sets = {}};
    for (const JoinedSet& set : sets) {
        table.sets.push_back({.name = set.name, .action = SIEVE_ACTION_DROP, .map_fd = set.filter_fd});
        wanted.sets.push_back(set.name);
    }
    table.joint = std::move(wanted);
    SIEVE_ASSIGN(const Replay replay, Replay::start(table, point));
    Questioning questioning(joint, sets, replay);
    JointReport report;
    for (std::size_t set = 0; set < sets.size(); set++) {
        const PreflightQuestions questions(*sets[set].image);
        for (const sieve_key& key : questions.witnesses().keys) {
            SIEVE_TRY(questioning.ask_member(set, key));
            report.members++;
        }
        const auto& keys = questions.non_members().keys;
        const std::size_t asked = std::min(keys.size(), non_members_wanted / sets.size());
        for (std::size_t i = 0; i < asked; i++) {
            SIEVE_TRY(questioning.ask(keys[i]));
            report.non_members++;
        }
    }
    return report;
}

} // namespace sieve::kernel
