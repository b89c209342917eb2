// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tables with a joint filter, in the kernel: every packet is decided and counted as by the sets themselves.
#include <linux/bpf.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/joint_preflight.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve {
namespace {

using namespace test;
using kernel::FilterMap;
using kernel::WantedJoint;
using kernel::WantedSet;
using kernel::WantedTable;

// With so many bits a key no false positive comes up among the few packets of these tests.
constexpr double exact_enough = 60;
constexpr double joint_bits = 32;

using Addresses = std::set<std::uint32_t>;

sieve_key key_of(std::uint32_t address) {
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(address);
    return key;
}

KeySet keys_of(const Addresses& addresses) {
    KeySet keys(SIEVE_FIELD_SRC);
    for (const std::uint32_t address : addresses) keys.add(key_of(address));
    return keys;
}

Bytes frame_of(std::uint32_t address) {
    return (Ethernet{} /
            IPv4{.src = fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                                    address & 255)} /
            Udp{} / Payload{.bytes = 18})
        .bytes();
}

// A set with its keys, its image and its filter in the kernel.
struct Member {
    std::string name;
    Addresses addresses;
    KeySet keys;
    Image image;
    FilterMap map;

    Member(std::string called, Addresses held, sieve_kind kind = SIEVE_KIND_BLOCKED, std::uint64_t seed = 1)
        : name(std::move(called)), addresses(std::move(held)), keys(keys_of(addresses)),
          image(image_of_keys(keys, seed, exact_enough, kind)), map(map_of(image)) {}
};

using JointMembers = std::vector<std::unique_ptr<Member>>;

// Random sets of `each` addresses below `range`, so that many addresses are in several sets.
JointMembers random_members(std::size_t sets, std::size_t each, std::uint32_t range, std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    JointMembers members;
    for (std::size_t set = 0; set < sets; set++) {
        Addresses addresses;
        while (addresses.size() < each)
            addresses.insert(0x0a000000 + static_cast<std::uint32_t>(random() % range));
        members.push_back(std::make_unique<Member>(fmt::format("set{}", set), addresses));
    }
    return members;
}

struct Joint {
    JointFilter filter;
    FilterMap map;
    std::vector<std::string> names;

    [[nodiscard]] WantedJoint wanted() const { return {.map_fd = map.fd(), .sets = names}; }
};

// Whether joint filters are tables, as addresses get them, or filters that hash.
bool join_exactly = false;

JointOptions options_of(double bits_per_key) {
    if (join_exactly) return {.fpr = {}, .bits_per_key = {}, .seed = 1, .exact = true};
    return {.fpr = {}, .bits_per_key = bits_per_key, .seed = 1};
}

Joint join(const JointMembers& members, double bits_per_key = joint_bits) {
    std::vector<const KeySet*> keys;
    std::vector<std::string> names;
    for (const auto& member : members) {
        keys.push_back(&member->keys);
        names.push_back(member->name);
    }
    JointFilter filter = value_or_fail(JointFilter::build(keys, options_of(bits_per_key)));
    FilterMap map = value_or_fail(FilterMap::create(filter.lines(), "joint"));
    return {.filter = std::move(filter), .map = std::move(map), .names = std::move(names)};
}

class JointTable : public ::testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        join_exactly = GetParam();
        scratch_ = &shared_program();
    }

    void put(const WantedTable& table) {
        const auto done = scratch_->table().replace(table);
        ASSERT_TRUE(done) << done.error().message;
    }

    // How many of the sets in force share one lookup.
    [[nodiscard]] std::size_t joined() const {
        const auto table = scratch_->table().read();
        const auto count =
            std::count_if(table.sets.begin(), table.sets.end(),
                          [](const kernel::SetInForce& set) { return set.joined.has_value(); });
        EXPECT_EQ(table.joint_id != 0, count != 0);
        return static_cast<std::size_t>(count);
    }

    [[nodiscard]] std::uint32_t run(std::uint32_t address) const {
        const auto verdict = scratch_->run(frame_of(address));
        EXPECT_TRUE(verdict) << verdict.error().message;
        return verdict.value_or(XDP_ABORTED);
    }

    // What a table of these sets, in this order, does with a packet: the sets that count it, the last one of
    // which decides unless it only counts. From the lists alone.
    static std::vector<std::string> model(const std::vector<std::pair<const Member*, sieve_action>>& order,
                                          std::uint32_t address, bool& decided) {
        std::vector<std::string> hits;
        decided = false;
        for (const auto& [member, action] : order) {
            if (!member->addresses.contains(address)) continue;
            hits.push_back(member->name);
            decided = action != SIEVE_ACTION_COUNT;
            if (decided) break;
        }
        return hits;
    }

    // Asks about every address that a set holds, and about others. Returns how many packets matched.
    std::size_t expect_model(const std::vector<std::pair<const Member*, sieve_action>>& order,
                             sieve_action default_action = SIEVE_ACTION_PASS) {
        Addresses asked;
        for (const auto& [member, action] : order)
            asked.insert(member->addresses.begin(), member->addresses.end());
        const std::size_t members = asked.size();
        for (std::uint32_t i = 0; i < members / 4; i++) asked.insert(0x0b000000 + 7 * i);

        const auto table = scratch_->table().read();
        const auto before = kernel::read_stats(scratch_->instance());
        std::map<std::string, std::uint64_t> counted;
        std::size_t matched = 0;
        for (const std::uint32_t address : asked) {
            bool decided = false;
            const std::vector<std::string> wanted = model(order, address, decided);
            for (const std::string& name : wanted) counted[name]++;
            matched += wanted.empty() ? 0 : 1;
            const std::uint32_t verdict = run(address);
            const sieve_trace trace = scratch_->trace();
            std::uint64_t hits = 0;
            sieve_action action = default_action;
            std::uint32_t decision = SIEVE_NO_SET;
            for (const std::string& name : wanted) {
                const kernel::SetInForce* set = table.find(name);
                if (set == nullptr) throw std::runtime_error("no set " + name);
                hits |= 1ULL << set->slot;
                if (decided && name == wanted.back()) {
                    action = set->action;
                    decision = set->slot;
                }
            }
            EXPECT_EQ(trace.hits, hits) << std::hex << address;
            EXPECT_EQ(trace.decision, decision) << std::hex << address;
            EXPECT_EQ(verdict, action == SIEVE_ACTION_DROP ? XDP_DROP : XDP_PASS) << std::hex << address;
            if (HasFailure()) return matched;
        }
        const auto after = kernel::read_stats(scratch_->instance());
        for (const kernel::SetInForce& set : table.sets)
            EXPECT_EQ(after->hit[set.slot].packets - before->hit[set.slot].packets, counted[set.name])
                << set.name;
        return matched;
    }

    // The table of these sets with that action each, joined.
    static WantedTable table_of(const std::vector<std::pair<const Member*, sieve_action>>& order,
                                const Joint* joint, bool keep = false) {
        WantedTable table{.default_action = SIEVE_ACTION_PASS, .sets = {}};
        for (const auto& [member, action] : order)
            table.sets.push_back(
                {.name = member->name, .action = action, .map_fd = keep ? -1 : member->map.fd()});
        if (joint != nullptr) table.joint = joint->wanted();
        return table;
    }

    kernel::Scratch* scratch_ = nullptr;
};

using Order = std::vector<std::pair<const Member*, sieve_action>>;

Order order_of(const JointMembers& members) {
    Order order;
    for (const auto& member : members)
        order.emplace_back(member.get(), order.size() % 3 == 2 ? SIEVE_ACTION_PASS : SIEVE_ACTION_DROP);
    return order;
}

TEST_P(JointTable, MembersOfAllSetsNameTheFirstThatHoldsThem) {
    for (const std::size_t sets : {2, 3, 8, 16}) {
        SCOPED_TRACE(sets);
        const JointMembers members = random_members(sets, 60, 500, sets);
        const Joint joint = join(members);
        const Order order = order_of(members);
        put(table_of(order, &joint));
        EXPECT_EQ(joined(), sets);
        EXPECT_GT(expect_model(order), 100U);
    }
}

// A set that only counts leaves the packet to those behind it, joined or not.
TEST_P(JointTable, CountingSetsLeaveTheRestToTheOthers) {
    const JointMembers members = random_members(6, 80, 200);
    const Joint joint = join(members);
    Order order = order_of(members);
    for (const std::size_t counting : {0, 1, 4}) order[counting].second = SIEVE_ACTION_COUNT;
    put(table_of(order, &joint));
    EXPECT_EQ(joined(), 6U);
    expect_model(order);
    for (auto& [member, action] : order) action = SIEVE_ACTION_COUNT;
    put(table_of(order, nullptr, true));
    EXPECT_EQ(joined(), 6U) << "the filters stay, so the joint filter does";
    expect_model(order);
}

// Sets that the joint filter does not know stand between those that it knows: a verified one, one of a kind
// that changes, one of another field.
TEST_P(JointTable, OtherSetsAreAskedInTheirOrder) {
    const JointMembers members = random_members(4, 80, 300);
    const JointMembers alone = random_members(2, 80, 300, 77);
    const Member live("live", alone[0]->addresses, SIEVE_KIND_DDLCBF);
    const Member extra("extra", alone[1]->addresses);
    const Joint joint = join(members);
    Order order{{&extra, SIEVE_ACTION_PASS}};
    for (const auto& [member, action] : order_of(members)) {
        order.emplace_back(member, action);
        if (order.size() == 3) order.emplace_back(&live, SIEVE_ACTION_DROP);
    }
    put(table_of(order, &joint));
    EXPECT_EQ(joined(), 4U);
    expect_model(order);
    // The same with the others at the end.
    std::rotate(order.begin(), order.begin() + 1, order.end());
    put(table_of(order, nullptr, true));
    EXPECT_EQ(joined(), 4U);
    expect_model(order);
}

TEST_P(JointTable, ASwappedSetIsAskedByItself) {
    const JointMembers members = random_members(5, 80, 200);
    const Joint joint = join(members);
    Order order = order_of(members);
    put(table_of(order, &joint));
    std::size_t left = 5;
    // In the end only one joined set would be left, which is not worth a joint filter.
    for (const std::size_t swapped : {2, 0, 4, 1}) {
        const JointMembers fresh = random_members(1, 80, 200, 90 + swapped);
        const Member other(members[swapped]->name, fresh[0]->addresses);
        WantedTable table = table_of(order, nullptr, true);
        table.sets[swapped].map_fd = other.map.fd();
        put(table);
        left--;
        EXPECT_EQ(joined(), left == 1 ? 0 : left);
        Order now = order;
        now[swapped].first = &other;
        expect_model(now);
        // Back to the old list, which now is asked by itself, too.
        table = table_of(order, nullptr, true);
        table.sets[swapped].map_fd = members[swapped]->map.fd();
        put(table);
        expect_model(order);
    }
    put(table_of(order, &joint));
    EXPECT_EQ(joined(), 5U);
    expect_model(order);
}

TEST_P(JointTable, SetsThatLeaveOrMoveTakeNoKeyWithThem) {
    const JointMembers members = random_members(6, 80, 200);
    const Joint joint = join(members);
    const Order all = order_of(members);
    put(table_of(all, &joint));
    Order order = all;
    order.erase(order.begin() + 3);
    put(table_of(order, nullptr, true));
    EXPECT_EQ(joined(), 5U);
    expect_model(order);
    // The last one to the front: it alone is out of order.
    std::rotate(order.begin(), order.end() - 1, order.end());
    put(table_of(order, nullptr, true));
    EXPECT_EQ(joined(), 4U);
    expect_model(order);
    std::reverse(order.begin(), order.end());
    put(table_of(order, nullptr, true));
    expect_model(order);
    // Whoever left must not come back under the joint filter by its name alone.
    put(table_of(all, &joint));
    Order without = all;
    without.erase(without.begin());
    put(table_of(without, nullptr, true));
    WantedTable back = table_of(all, nullptr, true);
    back.sets[0].map_fd = members[0]->map.fd();
    put(back);
    EXPECT_EQ(joined(), 5U);
    expect_model(all);
}

// Keys of a set change in place while a change is on probation. Neither the table of now nor the one that
// comes back may ask the joint filter about it. Here the set's filter is another one than the joint filter
// was built of, as if the keys had changed already.
TEST_P(JointTable, ASetLeavesTheTableThatComesBackAsWell) {
    for (const std::size_t sets : {2, 5}) {
        SCOPED_TRACE(sets);
        const JointMembers members = random_members(sets, 60, 500, 21);
        const Joint joint = join(members);
        const Member changed("set0", random_members(1, 60, 500, 22).front()->addresses);
        const Member swapped("set1", random_members(1, 60, 500, 23).front()->addresses);
        Order order = order_of(members);
        order[0] = {&changed, SIEVE_ACTION_DROP};
        for (const std::size_t left_behind : {0, 1}) {
            const bool in_both = left_behind == 1;
            put(table_of(order, &joint));
            ASSERT_EQ(joined(), sets);
            WantedTable next = table_of(order, nullptr, true);
            // What changes: a filter, so that set1 leaves, or only an action.
            Order after = order;
            if (in_both) {
                after[1].second = next.sets[1].action = SIEVE_ACTION_COUNT;
            } else {
                after[1].first = &swapped;
                next.sets[1].map_fd = swapped.map.fd();
            }
            next.probation = std::chrono::hours(1);
            put(next);
            const Status left = scratch_->table().leave_joint(changed.map.id());
            ASSERT_TRUE(left) << left.error().message;
            EXPECT_FALSE(scratch_->table().read().find("set0")->joined);
            EXPECT_GT(expect_model(after), 60U);
            const auto returning = scratch_->table().read_returning();
            ASSERT_TRUE(returning);
            EXPECT_FALSE(returning->find("set0")->joined);
            EXPECT_EQ(returning->find("set1")->joined.has_value(), sets > 2) << "one set alone leaves, too";
            ASSERT_TRUE(scratch_->table().take_back());
            EXPECT_EQ(joined(), sets > 2 ? sets - 1 : 0);
            EXPECT_GT(expect_model(order), 60U);
        }
    }
}

// The controller dies before each of the stores. Since the keys have not changed yet, both tables are right.
TEST_P(JointTable, DeathWhileASetLeavesHarmsNoTable) {
    struct Death {};
    const JointMembers members = random_members(2, 60, 100, 24);
    const Joint joint = join(members);
    const Order order = order_of(members);
    Order counted = order;
    counted[1].second = SIEVE_ACTION_COUNT;
    bool finished = false;
    std::size_t fatal = 0;
    for (; !finished; fatal++) {
        ASSERT_LT(fatal, 100U);
        SCOPED_TRACE(fatal);
        put(table_of(order, &joint));
        WantedTable next = table_of(counted, nullptr, true);
        next.probation = std::chrono::hours(1);
        put(next);
        kernel::SetTable dying = scratch_->table();
        std::size_t steps = 0;
        dying.set_step_hook([&](std::string_view) {
            if (steps++ == fatal) throw Death();
        });
        try {
            ASSERT_TRUE(dying.leave_joint(members[0]->map.id()));
            finished = true;
        } catch (const Death&) {
        }
        EXPECT_GT(expect_model(counted), 60U);
        // As if the time were over.
        volatile sieve_control& control = scratch_->instance().control();
        control.active = sieve_active_until(static_cast<std::uint32_t>(control.active & 1), program_now());
        EXPECT_GT(expect_model(order), 60U);
        put(table_of(order, &joint));
        EXPECT_EQ(joined(), 2U);
        EXPECT_GT(expect_model(order), 60U);
    }
    EXPECT_EQ(fatal, 2U * 2 * 2 + 2) << "two stores for each set and bank, and a wait";
}

TEST_P(JointTable, APacketWithoutTheirFieldsMatchesNoneOfThem) {
    KeySet first(SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT), second(SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT);
    sieve_key key = key_of(0x0a000001);
    key.word[4] = std::uint64_t{53} << SIEVE_DPORT_SHIFT;
    first.add(key);
    key.word[4] = std::uint64_t{80} << SIEVE_DPORT_SHIFT;
    second.add(key);
    const FilterMap maps[] = {map_of(image_of_keys(first, 1, exact_enough, SIEVE_KIND_BLOCKED)),
                              map_of(image_of_keys(second, 2, exact_enough, SIEVE_KIND_BLOCKED))};
    const Member source("source", {0x0a000001});
    const JointFilter filter = value_or_fail(JointFilter::build(
        std::vector<const KeySet*>{&first, &second}, {.fpr = {}, .bits_per_key = joint_bits, .seed = 1}));
    const FilterMap map = value_or_fail(FilterMap::create(filter.lines(), "joint"));
    put({.default_action = SIEVE_ACTION_PASS,
         .sets = {{.name = "dns", .action = SIEVE_ACTION_DROP, .map_fd = maps[0].fd()},
                  {.name = "web", .action = SIEVE_ACTION_DROP, .map_fd = maps[1].fd()},
                  {.name = "source", .action = SIEVE_ACTION_COUNT, .map_fd = source.map.fd()}},
         .joint = WantedJoint{.map_fd = map.fd(), .sets = {"dns", "web"}}});
    const auto verdict = [&](const Packet& packet) { return *scratch_->run(packet.bytes()); };
    const IPv4 ip{.src = "10.0.0.1"};
    EXPECT_EQ(verdict(Ethernet{} / ip / Udp{.dport = 53}), XDP_DROP);
    EXPECT_EQ(verdict(Ethernet{} / ip / Udp{.dport = 80}), XDP_DROP);
    EXPECT_EQ(verdict(Ethernet{} / ip / Udp{.dport = 81}), XDP_PASS);
    EXPECT_EQ(std::popcount(scratch_->trace().hits), 1) << "the set of sources is asked all the same";
    IPv4 fragment = ip;
    fragment.offset = 8;
    EXPECT_EQ(verdict(Ethernet{} / fragment / Payload{.bytes = 32}), XDP_PASS);
    EXPECT_EQ(std::popcount(scratch_->trace().hits), 1);
}

// Packets run on one CPU while the table changes on the other: swaps of each set, sets that leave and come
// back, joined and not. At every moment a member is dropped, and a non-member passes.
TEST_P(JointTable, NoMemberIsMissedWhileSetsAreSwapped) {
    constexpr std::uint32_t in_all = 0x0a0000ff, in_last = 0x0a0000fe, in_first = 0x0a0000fd;
    const auto lists = [&](std::uint64_t seed) {
        JointMembers members = random_members(4, 40, 200, seed);
        for (auto& member : members) {
            Addresses addresses = member->addresses;
            addresses.insert(in_all);
            if (member->name == "set0") addresses.insert(in_first);
            if (member->name == "set3") addresses.insert(in_last);
            member = std::make_unique<Member>(member->name, addresses);
        }
        return members;
    };
    const JointMembers one = lists(1), other = lists(2);
    const Joint joint = join(one);
    Order order;
    for (const auto& member : one) order.emplace_back(member.get(), SIEVE_ACTION_DROP);
    put(table_of(order, &joint));

    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> packets = 0, wrong = 0;
    std::thread traffic([&] {
        const Bytes members[] = {frame_of(in_all), frame_of(in_last), frame_of(in_first)};
        const Bytes non_member = frame_of(0x0b000001);
        while (!stop) {
            for (const Bytes& member : members)
                if (*scratch_->run(member) != XDP_DROP) wrong++;
            if (*scratch_->run(non_member) != XDP_PASS) wrong++;
            packets += 4;
        }
    });
    for (int round = 0; round < 60 || (packets < bounded(10'000) && round < 6000); round++) {
        WantedTable table = table_of(order, round % 7 == 0 ? &joint : nullptr, round % 7 != 0);
        const auto swapped = static_cast<std::size_t>(round % 4);
        if (round % 7 != 0) table.sets[swapped].map_fd = (round % 2 == 0 ? one : other)[swapped]->map.fd();
        const auto done = scratch_->table().replace(table);
        EXPECT_TRUE(done) << done.error().message;
    }
    stop = true;
    traffic.join();
    EXPECT_EQ(wrong, 0U) << "of " << packets;
    EXPECT_GE(packets, bounded(10'000));
}

INSTANTIATE_TEST_SUITE_P(Forms, JointTable, testing::Bool(),
                         [](const auto& info) { return info.param ? "Exact" : "Hashed"; });

class JointPreflight : public ::testing::TestWithParam<bool> {
  protected:
    void SetUp() override { join_exactly = GetParam(); }
    static std::vector<kernel::JoinedSet> sets_of(const JointMembers& members) {
        std::vector<kernel::JoinedSet> sets;
        for (const auto& member : members)
            sets.push_back(
                {.name = member->name, .filter_fd = member->map.fd(), .members = member->image.witnesses()});
        return sets;
    }
};

TEST_P(JointPreflight, PassesAFilterThatAnswersCorrectly) {
    const JointMembers members = random_members(5, 800, 3000);
    const Joint joint = join(members, 6); // many false positives
    const auto report = kernel::preflight_joint(joint.filter, joint.map, sets_of(members));
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GT(report->members, 100U);
    EXPECT_GT(report->non_members, 4000U);
}

TEST_P(JointPreflight, RefusesAFilterThatMissesMembersOrNamesTheWrongSet) {
    const JointMembers members = random_members(3, 200, 3000);
    const Joint joint = join(members);
    // The kernel's copy differs from user space's.
    std::vector<sieve_line> lines(joint.filter.lines().begin(), joint.filter.lines().end());
    for (std::size_t line = SIEVE_FIRST_LINE + 1; line < lines.size(); line++)
        for (auto& word : lines[line].word) word ^= 0x10;
    const FilterMap damaged = value_or_fail(FilterMap::create(lines, "joint"));
    const auto differs = kernel::preflight_joint(joint.filter, damaged, sets_of(members));
    ASSERT_FALSE(differs);
    EXPECT_EQ(differs.error().kind, ErrorKind::bad_input);
    // Both agree, but the filter is that of other sets.
    const Joint foreign = join(random_members(3, 200, 3000, 5));
    const auto missed = kernel::preflight_joint(foreign.filter, foreign.map, sets_of(members));
    ASSERT_FALSE(missed);
    EXPECT_NE(missed.error().message.find("nothing was changed"), std::string::npos)
        << missed.error().message;
    // The sets in another order than their numbers.
    std::vector<kernel::JoinedSet> turned = sets_of(members);
    std::reverse(turned.begin(), turned.end());
    EXPECT_FALSE(kernel::preflight_joint(joint.filter, joint.map, turned));
}

INSTANTIATE_TEST_SUITE_P(Forms, JointPreflight, testing::Bool(),
                         [](const auto& info) { return info.param ? "Exact" : "Hashed"; });

} // namespace
} // namespace sieve
