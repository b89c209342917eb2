// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/programs/joint_preflight.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include <sieve/image.h>

#include "libsieve/build/random_keys.hpp"
#include "libsieve/kernel/programs/replay.hpp"
#include "libsieve/packets/carrier.hpp"

namespace sieve::kernel {

namespace {

// Of all sets together.
constexpr std::size_t members_wanted = 4096;
constexpr std::size_t non_members_wanted = 4096;

class Questioning {
  public:
    Questioning(const JointFilter& joint, std::span<const JoinedSet> sets, const Replay& replay)
        : joint_(joint), sets_(sets), replay_(replay) {}

    Status ask_member(std::size_t set, const sieve_key& key) {
        SIEVE_ASSIGN(const std::optional<std::uint32_t> number, ask(key));
        if (number && *number <= set) return {};
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

    // Some packet types cannot have some keys: ICMP has no ports.
    bool can_ask(const sieve_key& key) { return !carrier_.carry(key, joint_.fields()).empty(); }

  private:
    const JointFilter& joint_;
    std::span<const JoinedSet> sets_;
    const Replay& replay_;
    packets::Carrier carrier_;
};

// Keys from all parts of the sample.
std::vector<sieve_witness> some_of(std::span<const sieve_witness> members, std::size_t wanted) {
    std::vector<sieve_witness> some;
    const std::size_t count = std::min(members.size(), wanted);
    for (std::size_t i = 0; i < count; i++) some.push_back(members[i * members.size() / count]);
    return some;
}

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
        const std::vector<sieve_witness> members = some_of(sets[set].members, members_wanted / sets.size());
        for (const sieve_witness& member : members) {
            if (!questioning.can_ask(member.key)) continue;
            SIEVE_TRY(questioning.ask_member(set, member.key));
            report.members++;
        }
        RandomKeys draw(members, joint.fields(), joint.identity()[0] + set);
        for (std::size_t i = 0; i < non_members_wanted / sets.size(); i++) {
            const sieve_key key = draw();
            if (!questioning.can_ask(key)) continue;
            SIEVE_TRY(questioning.ask(key));
            report.non_members++;
        }
    }
    return report;
}

} // namespace sieve::kernel
