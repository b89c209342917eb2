// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/set_table.hpp"

#include <linux/bpf.h>
#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/preflight.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

Bytes frame_from(const std::string& source) {
    return (Ethernet{} / IPv4{.src = source} / Udp{}).bytes();
}

JointFilter joint_of(const std::vector<std::vector<std::string>>& sets) {
    std::vector<KeySet> keys;
    for (const auto& set : sets) {
        keys.emplace_back(SIEVE_FIELD_SRC);
        for (const std::string& text : set) keys.back().add(value_or_fail(parse_key(text, SIEVE_FIELD_SRC)));
    }
    std::vector<const KeySet*> all;
    for (const KeySet& set : keys) all.push_back(&set);
    return value_or_fail(JointFilter::build(all, {.fpr = {}, .bits_per_key = {}, .seed = 1}));
}

struct Death {};

bool map_exists(std::uint32_t id) {
    return static_cast<bool>(UniqueFd(bpf_map_get_fd_by_id(id)));
}

class SetTableTest : public ::testing::Test {
  protected:
    void SetUp() override { scratch_ = load(); }

    static std::unique_ptr<Scratch> load() {
        auto loaded = Scratch::load(true);
        EXPECT_TRUE(loaded) << loaded.error().message;
        return loaded ? std::make_unique<Scratch>(std::move(*loaded)) : nullptr;
    }

    [[nodiscard]] Status replace(const WantedTable& wanted) const {
        return scratch_->table().replace(wanted);
    }

    [[nodiscard]] bool drops(const std::string& source) const {
        const auto verdict = scratch_->run(frame_from(source));
        EXPECT_TRUE(verdict) << verdict.error().message;
        return verdict.value_or(XDP_ABORTED) == XDP_DROP;
    }

    [[nodiscard]] std::uint64_t hits(const std::string& name) const {
        const auto table = scratch_->table().read();
        const SetInForce* set = table.find(name);
        EXPECT_NE(set, nullptr) << name;
        if (set == nullptr) return 0;
        return difference(read_stats(scratch_->instance())->hit[set->slot], set->baseline).packets;
    }

    // The map that a bank really has for a slot.
    [[nodiscard]] std::uint32_t map_in(std::uint32_t bank, std::uint32_t slot) const {
        const std::uint32_t index = bank * SIEVE_SLOTS + slot;
        std::uint32_t id = 0;
        return bpf_map_lookup_elem(scratch_->instance().sets_fd(), &index, &id) == 0 ? id : 0;
    }
    [[nodiscard]] std::uint32_t map_in_force(std::uint32_t slot) const {
        return map_in(static_cast<std::uint32_t>(scratch_->instance().control().active), slot);
    }

    // Between changes both banks say the same, hold the same maps, and these maps are the noted ones.
    void expect_rest() const {
        const volatile sieve_control& control = scratch_->instance().control();
        EXPECT_EQ(control.changing, 0U);
        const auto* first = reinterpret_cast<const volatile std::uint8_t*>(&control.bank[0]);
        const auto* second = reinterpret_cast<const volatile std::uint8_t*>(&control.bank[1]);
        for (std::size_t i = 0; i < sizeof(sieve_policy); i++)
            ASSERT_EQ(first[i], second[i]) << "at byte " << i;
        for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++)
            for (std::uint32_t bank = 0; bank < SIEVE_BANKS; bank++)
                EXPECT_EQ(map_in(bank, slot), control.bank[bank].slot[slot].map_id) << "slot " << slot;
        for (std::uint32_t bank = 0; bank < SIEVE_BANKS; bank++)
            EXPECT_EQ(joint_in(bank), control.bank[bank].joint_id);
    }

    // The joint filter that a bank really has.
    [[nodiscard]] std::uint32_t joint_in(std::uint32_t bank) const {
        const UniqueFd outer = value_or_fail(open_map(scratch_->instance().rare().joint));
        std::uint32_t id = 0;
        return bpf_map_lookup_elem(outer.get(), &bank, &id) == 0 ? id : 0;
    }

    std::unique_ptr<Scratch> scratch_;
};

// An instance that was loaded with its filters and asked about each of them goes into service as new: both
// banks agree, its table is as wished, and its counters are zero.
TEST_F(SetTableTest, PutsATestedInstanceIntoService) {
    const Image images[] = {image_of({"10.0.0.1"}), image_of({"10.0.0.2"}), image_of({"10.0.0.3"})};
    std::vector<FilterMap> maps;
    std::vector<int> filters;
    for (const Image& image : images) {
        maps.push_back(map_of(image));
        filters.push_back(maps.back().fd());
    }
    scratch_ = std::make_unique<Scratch>(value_or_fail(Scratch::load_with(
        [&] {
            return Scratch::Sets{filters, {}};
        },
        false)));
    for (std::uint32_t slot = 0; slot < 3; slot++) {
        const auto report =
            preflight(*scratch_, slot, images[slot], PreflightQuestions(images[slot]), "tested", false);
        ASSERT_TRUE(report) << report.error().message;
    }
    EXPECT_GT(read_stats(scratch_->instance())->passed.packets, 0U);

    const BpfObject object = value_or_fail(std::move(*scratch_).release());
    SetTable table(object.instance());
    ASSERT_TRUE(table.install({SIEVE_ACTION_DROP,
                               {{"one", SIEVE_ACTION_PASS, maps[0].fd()},
                                {"two", SIEVE_ACTION_COUNT, maps[1].fd()},
                                {"three", SIEVE_ACTION_PASS, maps[2].fd()}}}));
    const Stats stats = value_or_fail(read_stats(object.instance()));
    EXPECT_EQ(stats.passed.packets + stats.dropped.packets, 0U);
    EXPECT_EQ(stats.outcome[SIEVE_OUTCOME_COMPLETE], 0U);

    const TableInForce live = table.read();
    EXPECT_EQ(live.default_action, SIEVE_ACTION_DROP);
    ASSERT_EQ(live.sets.size(), 3U);
    for (std::uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(live.sets[i].slot, i);
        EXPECT_EQ(live.sets[i].map_id, maps[i].id());
        EXPECT_EQ(live.sets[i].baseline.packets, 0U);
    }
    const volatile sieve_control& control = object.instance().control();
    for (std::uint32_t bank = 0; bank < SIEVE_BANKS; bank++)
        for (std::uint32_t slot = 0; slot < SIEVE_SLOTS; slot++) {
            const std::uint32_t index = bank * SIEVE_SLOTS + slot;
            std::uint32_t id = 0;
            if (bpf_map_lookup_elem(object.instance().sets_fd(), &index, &id) != 0) id = 0;
            EXPECT_EQ(id, slot < 3 ? maps[slot].id() : 0U);
            EXPECT_EQ(control.bank[bank].slot[slot].map_id, id);
        }
    // And further changes work.
    ASSERT_TRUE(table.replace({SIEVE_ACTION_PASS, {{"two", SIEVE_ACTION_DROP, -1}}}));
    EXPECT_EQ(table.read().sets.front().map_id, maps[1].id());
}

TEST_F(SetTableTest, StartsEmpty) {
    const auto table = scratch_->table().read();
    EXPECT_TRUE(table.sets.empty());
    EXPECT_EQ(table.default_action, SIEVE_ACTION_PASS);
    expect_rest();
}

TEST_F(SetTableTest, ReadsBackWhatWasPut) {
    const auto first = map_of(image_of({"10.0.0.1"})), second = map_of(image_of({"10.0.0.2"}));
    ASSERT_TRUE(
        replace({SIEVE_ACTION_DROP,
                 {{"a-b.c_1", SIEVE_ACTION_PASS, first.fd()}, {"z", SIEVE_ACTION_COUNT, second.fd()}}}));
    const auto table = scratch_->table().read();
    EXPECT_EQ(table.default_action, SIEVE_ACTION_DROP);
    ASSERT_EQ(table.sets.size(), 2U);
    EXPECT_EQ(table.sets[0].name, "a-b.c_1");
    EXPECT_EQ(table.sets[0].action, SIEVE_ACTION_PASS);
    EXPECT_EQ(table.sets[0].map_id, first.id());
    EXPECT_EQ(table.sets[1].name, "z");
    EXPECT_EQ(table.sets[1].map_id, second.id());
    expect_rest();
}

TEST_F(SetTableTest, SwapsBetweenSizesAndFreesWhatLeft) {
    const Image images[] = {image_of({"10.0.0.1"}), random_image(50'000, 1),
                            image_of({"10.0.0.1", "10.0.0.2"})};
    std::uint32_t previous = 0;
    for (int round = 0; round < 6; round++) {
        std::uint32_t id = 0;
        {
            const auto map = map_of(images[round % 3]);
            id = map.id();
            const auto done = replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}}});
            ASSERT_TRUE(done) << done.error().message;
        }
        EXPECT_TRUE(map_exists(id)) << "the program holds the map";
        EXPECT_FALSE(previous != 0 && map_exists(previous)) << "nobody holds the map that left";
        EXPECT_EQ(drops("10.0.0.1"), round % 3 != 1);
        EXPECT_EQ(drops("10.0.0.2"), round % 3 == 2);
        expect_rest();
        previous = id;
    }
    ASSERT_TRUE(replace({SIEVE_ACTION_PASS, {}}));
    EXPECT_FALSE(map_exists(previous));
    EXPECT_FALSE(drops("10.0.0.1"));
    expect_rest();
}

TEST_F(SetTableTest, KeepsCountersThroughSwapAndOrder) {
    const auto first = map_of(image_of({"10.0.0.1"})), second = map_of(image_of({"10.0.0.1", "10.0.0.2"}));
    ASSERT_TRUE(
        replace({SIEVE_ACTION_PASS,
                 {{"other", SIEVE_ACTION_COUNT, first.fd()}, {"bad", SIEVE_ACTION_DROP, first.fd()}}}));
    for (int i = 0; i < 5; i++) EXPECT_TRUE(drops("10.0.0.1"));
    ASSERT_TRUE(replace({SIEVE_ACTION_PASS,
                         {{"bad", SIEVE_ACTION_DROP, second.fd()}, {"new", SIEVE_ACTION_DROP, first.fd()}}}));
    EXPECT_EQ(hits("bad"), 5U);
    EXPECT_TRUE(drops("10.0.0.2"));
    EXPECT_EQ(hits("bad"), 6U);
    EXPECT_EQ(hits("new"), 0U);
}

TEST_F(SetTableTest, NewSetsCountFromZeroInUsedSlots) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    // More rounds than there are slots, so that each slot is used again.
    for (std::uint32_t round = 0; round < 2 * SIEVE_SLOTS; round++) {
        const std::string name = fmt::format("set{}", round);
        ASSERT_TRUE(replace({SIEVE_ACTION_PASS, {{name, SIEVE_ACTION_DROP, map.fd()}}}));
        EXPECT_EQ(hits(name), 0U);
        for (std::uint32_t i = 0; i <= round % 3; i++) EXPECT_TRUE(drops("10.0.0.1"));
        EXPECT_EQ(hits(name), 1 + round % 3);
    }
}

TEST_F(SetTableTest, CountersStartAfreshIfAsked) {
    const auto map = map_of(image_of({"10.0.0.1"})), other = map_of(image_of({"10.0.0.2"}));
    ASSERT_TRUE(replace({SIEVE_ACTION_PASS,
                         {{"bad", SIEVE_ACTION_DROP, map.fd()}, {"more", SIEVE_ACTION_COUNT, other.fd()}}}));
    for (int i = 0; i < 5; i++) EXPECT_TRUE(drops("10.0.0.1"));
    EXPECT_FALSE(drops("10.0.0.2"));
    const std::uint32_t slot = scratch_->table().read().find("bad")->slot;
    WantedTable wanted{SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP}, {"more", SIEVE_ACTION_COUNT}}};
    wanted.sets[0].fresh_counters = true;
    for (int round = 0; round < 3; round++) {
        ASSERT_TRUE(replace(wanted));
        EXPECT_EQ(hits("bad"), 0U);
        EXPECT_EQ(hits("more"), 1U);
        EXPECT_TRUE(drops("10.0.0.1")) << "the filter stays";
        EXPECT_EQ(hits("bad"), 1U);
        expect_rest();
    }
    EXPECT_NE(scratch_->table().read().find("bad")->slot, slot) << "a slot that no packet has used";
}

TEST_F(SetTableTest, AllCountersAreResetAtOnce) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    ASSERT_TRUE(replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}}}));
    for (int i = 0; i < 5; i++) EXPECT_TRUE(drops("10.0.0.1"));
    EXPECT_FALSE(drops("10.0.0.2"));
    const Stats before = value_or_fail(read_stats(scratch_->instance()));
    WantedTable wanted{SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP}}};
    wanted.reset_counters = true;
    ASSERT_TRUE(replace(wanted));
    EXPECT_EQ(hits("bad"), 0U);
    const auto counted = [&] {
        return since(value_or_fail(read_stats(scratch_->instance())), scratch_->table().read().baseline);
    };
    EXPECT_EQ(counted().dropped.packets, 0U);
    EXPECT_EQ(counted().by_default(), 0U);
    EXPECT_EQ(counted().outcome[SIEVE_OUTCOME_COMPLETE], 0U);
    EXPECT_TRUE(drops("10.0.0.1"));
    EXPECT_FALSE(drops("10.0.0.2"));
    EXPECT_EQ(hits("bad"), 1U);
    EXPECT_EQ(counted().dropped.packets, 1U);
    EXPECT_EQ(counted().by_default(), 1U);
    EXPECT_EQ(value_or_fail(read_stats(scratch_->instance())).dropped.packets, before.dropped.packets + 1)
        << "the program's own counters never fall";
    // Other changes keep the baseline.
    ASSERT_TRUE(replace({SIEVE_ACTION_DROP, {{"bad", SIEVE_ACTION_DROP}}}));
    EXPECT_EQ(counted().dropped.packets, 1U);
    expect_rest();
}

TEST_F(SetTableTest, AFullTableGivesWayToAFullTable) {
    std::vector<FilterMap> maps;
    for (int i = 0; i < SIEVE_MAX_SETS; i++) maps.push_back(map_of(image_of({fmt::format("10.0.0.{}", i)})));
    for (const char* prefix : {"a", "b", "c"}) {
        WantedTable wanted;
        for (int i = 0; i < SIEVE_MAX_SETS; i++)
            wanted.sets.push_back(
                {fmt::format("{}{}", prefix, i), SIEVE_ACTION_DROP, maps[static_cast<std::size_t>(i)].fd()});
        const auto done = replace(wanted);
        ASSERT_TRUE(done) << done.error().message;
        for (int i = 0; i < SIEVE_MAX_SETS; i++) {
            EXPECT_TRUE(drops(fmt::format("10.0.0.{}", i)));
            EXPECT_EQ(hits(fmt::format("{}{}", prefix, i)), 1U) << "set " << i;
        }
        EXPECT_FALSE(drops("10.0.0.99"));
        expect_rest();
    }
}

TEST_F(SetTableTest, RefusesWhatItCannotDo) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    ASSERT_TRUE(replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}}}));
    const std::vector<WantedTable> wrong{
        {SIEVE_ACTION_PASS, std::vector<WantedSet>(SIEVE_MAX_SETS + 1, {"x", SIEVE_ACTION_DROP, map.fd()})},
        {SIEVE_ACTION_PASS, {{"x", SIEVE_ACTION_DROP, map.fd()}, {"x", SIEVE_ACTION_PASS, map.fd()}}},
        {SIEVE_ACTION_PASS, {{"nobody", SIEVE_ACTION_DROP, -1}}},
        {SIEVE_ACTION_PASS, {{"", SIEVE_ACTION_DROP, map.fd()}}},
        {SIEVE_ACTION_PASS, {{"a b", SIEVE_ACTION_DROP, map.fd()}}},
        {SIEVE_ACTION_PASS, {{std::string(SIEVE_NAME_BYTES, 'x'), SIEVE_ACTION_DROP, map.fd()}}},
        // A descriptor that is not a map, and a map that is not a filter map.
        {SIEVE_ACTION_PASS, {{"x", SIEVE_ACTION_DROP, 0}}},
        {SIEVE_ACTION_PASS, {{"x", SIEVE_ACTION_DROP, scratch_->instance().stats_fd()}}},
    };
    for (std::size_t i = 0; i < wrong.size(); i++) {
        EXPECT_FALSE(replace(wrong[i])) << "table " << i;
        EXPECT_TRUE(drops("10.0.0.1")) << "table " << i;
        ASSERT_EQ(scratch_->table().read().sets.size(), 1U);
    }
    ASSERT_TRUE(replace(
        {SIEVE_ACTION_PASS, {{std::string(SIEVE_NAME_BYTES - 1, 'x'), SIEVE_ACTION_DROP, map.fd()}}}));
    EXPECT_EQ(scratch_->table().read().sets[0].name, std::string(SIEVE_NAME_BYTES - 1, 'x'));
    expect_rest();
}

TEST_F(SetTableTest, ChangingNothingFlipsNothing) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    const WantedTable wanted{SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}}};
    ASSERT_TRUE(replace(wanted));
    const std::uint64_t active = scratch_->instance().control().active;
    ASSERT_TRUE(replace(wanted));
    ASSERT_TRUE(replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, -1}}}));
    EXPECT_EQ(scratch_->instance().control().active, active);
}

// The controller dies before each of its steps in turn. The program must judge by the old table or the new
// one, and the next controller must work.
TEST_F(SetTableTest, DeathAtEveryStepLeavesAWholeTable) {
    const Image old_image = image_of({"10.0.0.1", "10.0.0.9"});
    const Image new_image = image_of({"10.0.0.9", "203.0.113.5"}, "src", 100);
    const auto watch = map_of(image_of({"10.0.0.7"})), last = map_of(image_of({"10.0.0.2"}));
    // Of the sets "watch" and "bad" with their new filters.
    const JointFilter joint = joint_of({{"10.0.0.7"}, {"10.0.0.9", "203.0.113.5"}});
    const FilterMap joint_map = value_or_fail(FilterMap::create(joint.lines(), "joint"));
    const std::vector<std::string> probes{"10.0.0.1", "10.0.0.7", "10.0.0.9", "203.0.113.5"};
    const std::string before = "dpdp"; // d: dropped, p: passed
    const WantedSet watched{"watch", SIEVE_ACTION_COUNT, -1}, bad{"bad", SIEVE_ACTION_DROP, -1};
    struct Change {
        const char* name;
        std::string after;
        WantedTable table; // in which map_fd 0 stands for the new map
        std::size_t least_steps;
    };
    const std::vector<Change> changes{
        {"swap", "ppdd", {SIEVE_ACTION_PASS, {watched, {"bad", SIEVE_ACTION_DROP, 0}}}, 6},
        {"add", "dpdd", {SIEVE_ACTION_PASS, {{"more", SIEVE_ACTION_DROP, 0}, watched, bad}}, 6},
        {"remove", "pppp", {SIEVE_ACTION_PASS, {watched}}, 8},
        {"other names",
         "ddpp",
         {SIEVE_ACTION_DROP, {{"x", SIEVE_ACTION_PASS, 0}, {"y", SIEVE_ACTION_DROP, 0}}},
         10},
        {"exchange",
         "ppdd",
         {SIEVE_ACTION_PASS,
          {watched, {.name = "bad", .action = SIEVE_ACTION_DROP, .map_fd = 0, .found_once = true}}},
         4},
        {"default", "dddd", {SIEVE_ACTION_DROP, {watched, bad}}, 6},
        {"all gone", "pppp", {SIEVE_ACTION_PASS, {}}, 10},
        {"joined",
         "dddd",
         {.default_action = SIEVE_ACTION_DROP,
          .sets = {watched, {"bad", SIEVE_ACTION_DROP, 0}},
          .joint = WantedJoint{.map_fd = joint_map.fd(), .sets = {"watch", "bad"}}},
         6},
    };
    const auto verdicts = [&] {
        std::string result;
        for (const std::string& probe : probes) result += drops(probe) ? 'd' : 'p';
        return result;
    };
    for (const Change& change : changes) {
        bool finished = false;
        for (std::size_t deadly = 1; !finished; deadly++) {
            SCOPED_TRACE(fmt::format("{}, death before step {}", change.name, deadly));
            std::uint32_t old_id = 0, new_id = 0;
            {
                const auto old_map = map_of(old_image), new_map = map_of(new_image);
                old_id = old_map.id();
                new_id = new_map.id();
                ASSERT_TRUE(replace(
                    {SIEVE_ACTION_PASS,
                     {{"watch", SIEVE_ACTION_COUNT, watch.fd()}, {"bad", SIEVE_ACTION_DROP, old_map.fd()}}}));
                ASSERT_EQ(verdicts(), before);
                WantedTable wanted = change.table;
                for (WantedSet& set : wanted.sets)
                    if (set.map_fd == 0) set.map_fd = new_map.fd();
                SetTable table = scratch_->table();
                std::size_t steps = 0;
                table.set_step_hook([&](std::string_view) {
                    if (++steps == deadly) throw Death{};
                });
                try {
                    const auto done = table.replace(wanted);
                    ASSERT_TRUE(done) << done.error().message;
                    finished = true;
                } catch (const Death&) {
                }
                const std::string now = verdicts();
                EXPECT_TRUE(now == before || now == change.after) << now;
                if (finished) {
                    EXPECT_EQ(now, change.after);
                    EXPECT_GE(steps, change.least_steps);
                }
                // Every set in force has its filter.
                const auto in_force = scratch_->table().read();
                for (const SetInForce& set : in_force.sets) EXPECT_NE(map_in_force(set.slot), 0U) << set.name;
            }
            // The next controller wants a different table.
            ASSERT_TRUE(replace({SIEVE_ACTION_PASS, {{"last", SIEVE_ACTION_DROP, last.fd()}}}));
            EXPECT_TRUE(drops("10.0.0.2"));
            EXPECT_FALSE(drops("10.0.0.1"));
            EXPECT_EQ(hits("last"), 1U);
            expect_rest();
            EXPECT_FALSE(map_exists(old_id)) << "leftover";
            EXPECT_FALSE(map_exists(new_id)) << "leftover";
            ASSERT_TRUE(replace({SIEVE_ACTION_PASS, {}}));
        }
    }
}

// One filter changes its place with another one and nothing else changes: a controller that dies while the
// kernel puts it there leaves a filter that the active bank does not note, or a note of one that is not
// there.
TEST_F(SetTableTest, FinishesADeadControllersExchange) {
    for (const bool came : {true, false}) {
        SCOPED_TRACE(came);
        std::uint32_t old_id = 0, new_id = 0;
        std::optional<FilterMap> watch = map_of(image_of({"10.0.0.3"}));
        {
            const auto old_map = map_of(image_of({"10.0.0.1"})), new_map = map_of(image_of({"10.0.0.2"}));
            old_id = old_map.id();
            new_id = new_map.id();
            ASSERT_TRUE(replace(
                {SIEVE_ACTION_PASS,
                 {{"watch", SIEVE_ACTION_COUNT, watch->fd()}, {"bad", SIEVE_ACTION_DROP, old_map.fd()}}}));
            volatile sieve_control& control = scratch_->instance().control();
            const auto bank = static_cast<std::uint32_t>(control.active);
            const std::uint32_t slot = scratch_->table().read().find("bad")->slot;
            control.changing = 2;
            if (came) {
                const std::uint32_t index = bank * SIEVE_SLOTS + slot;
                const int fd = new_map.fd();
                ASSERT_EQ(bpf_map_update_elem(scratch_->instance().sets_fd(), &index, &fd, BPF_ANY), 0);
            } else {
                control.bank[bank].slot[slot].map_id = new_id;
            }
        }
        ASSERT_TRUE(replace(
            {SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, -1}, {"watch", SIEVE_ACTION_COUNT, -1}}}));
        expect_rest();
        EXPECT_EQ(scratch_->table().read().find("bad")->map_id, came ? new_id : old_id);
        EXPECT_EQ(drops("10.0.0.1"), !came);
        EXPECT_EQ(drops("10.0.0.2"), came);
        EXPECT_FALSE(map_exists(came ? old_id : new_id)) << "leftover";
    }
}

// A controller that finds an unfinished change writes a whole bank anew. This is tested at every hook: tc's
// programs have no CPU map, so their banks have indices in one map less.
TEST_F(SetTableTest, FinishesADeadControllersChangeAtEveryHook) {
    for (const HookPoint point : all_hook_points) {
        SCOPED_TRACE(hook_point_name(point));
        scratch_ = std::make_unique<Scratch>(value_or_fail(Scratch::load(true, point)));
        const auto first = map_of(image_of({"10.0.0.1"})), second = map_of(image_of({"10.0.0.2"}));
        ASSERT_TRUE(
            replace({SIEVE_ACTION_PASS,
                     {{"one", SIEVE_ACTION_DROP, first.fd()}, {"two", SIEVE_ACTION_DROP, second.fd()}}}));
        // Each bank is once the active one.
        for (const sieve_action otherwise : {SIEVE_ACTION_DROP, SIEVE_ACTION_PASS, SIEVE_ACTION_DROP}) {
            scratch_->instance().control().changing = 1;
            ASSERT_TRUE(
                replace({otherwise, {{"one", SIEVE_ACTION_DROP, -1}, {"two", SIEVE_ACTION_DROP, -1}}}));
            expect_rest();
            EXPECT_EQ(hits("one"), 0U);
            for (const char* member : {"10.0.0.1", "10.0.0.2"}) EXPECT_TRUE(drops(member)) << member;
            EXPECT_EQ(hits("one"), 1U);
            EXPECT_EQ(hits("two"), 1U);
            ASSERT_TRUE(replace({otherwise, {{"three", SIEVE_ACTION_DROP, first.fd()}}}));
            ASSERT_TRUE(
                replace({otherwise,
                         {{"one", SIEVE_ACTION_DROP, first.fd()}, {"two", SIEVE_ACTION_DROP, second.fd()}}}));
        }
    }
}

// While one of these objects lives, no descriptor can be opened.
class NoDescriptors {
  public:
    NoDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    NoDescriptors(const NoDescriptors&) = delete;
    NoDescriptors& operator=(const NoDescriptors&) = delete;

  private:
    rlimit before_{};
};

// A step fails for lack of a descriptor or of memory. Before the flip, the old table stays, and the error
// says what was refused. After the flip, the new table is in force, and the error says so.
TEST_F(SetTableTest, AnErrorTellsWhetherTheNewTableIsInForce) {
    const auto old_map = map_of(image_of({"10.0.0.1"})), new_map = map_of(image_of({"10.0.0.2"}));
    const WantedTable before{SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, old_map.fd()}}};
    for (const bool no_memory : {false, true})
        for (const std::string_view failing : {"put maps", "grace"}) {
            SCOPED_TRACE(failing);
            ASSERT_TRUE(replace(before));
            SetTable table = scratch_->table();
            std::optional<NoDescriptors> none;
            table.set_step_hook([&](std::string_view step) {
                if (step != failing || none) return;
                if (no_memory) throw std::bad_alloc();
                none.emplace();
            });
            const bool flipped = failing == "grace";
            Status done;
            try {
                done = table.replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, new_map.fd()}}});
            } catch (const std::bad_alloc&) {
                EXPECT_FALSE(flipped) << "after the flip it is an error like others";
                done = failure(ErrorKind::out_of_memory, "");
            }
            none.reset();
            ASSERT_FALSE(done);
            EXPECT_EQ(done.error().kind == ErrorKind::unfinished, flipped) << done.error().message;
            EXPECT_EQ(done.error().message.starts_with("the new table is in force"), flipped);
            EXPECT_EQ(drops("10.0.0.1"), !flipped);
            EXPECT_EQ(drops("10.0.0.2"), flipped);
            // The next change finishes this change.
            ASSERT_TRUE(replace(before));
            EXPECT_TRUE(drops("10.0.0.1"));
            EXPECT_FALSE(drops("10.0.0.2"));
            expect_rest();
        }
}

// Packets run on one CPU while the filter of a set changes its place with others of other sizes and secrets.
// No member is missed, and no stranger found. The banks keep their parts: nothing but the filter is to
// change.
TEST_F(SetTableTest, AFilterChangesItsPlaceUnderPackets) {
    const auto exact = [](std::uint64_t room) {
        KeySet keys(SIEVE_FIELD_SRC);
        keys.add(value_or_fail(parse_key("10.0.0.1", SIEVE_FIELD_SRC)));
        BuildOptions options;
        options.kind.kind = SIEVE_KIND_EXACT;
        options.spare.room = room;
        return std::move(value_or_fail(build_set(keys, options, {})).image);
    };
    const auto replaced_by = [&](const FilterMap& map, const std::string& name, bool found_once) {
        return WantedTable{
            SIEVE_ACTION_PASS,
            {{.name = name, .action = SIEVE_ACTION_DROP, .map_fd = map.fd(), .found_once = found_once}}};
    };
    std::uint32_t before = 0;
    {
        const auto map = map_of(exact(0));
        before = map.id();
        ASSERT_TRUE(replace(replaced_by(map, "bad", true)));
    }
    volatile sieve_control& control = scratch_->instance().control();
    const std::uint64_t active = control.active;
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> packets = 0, wrong = 0;
    std::thread traffic([&] {
        const Bytes member = frame_from("10.0.0.1"), non_member = frame_from("10.9.9.9");
        while (!stop) {
            if (*scratch_->run(member) != XDP_DROP) wrong++;
            if (*scratch_->run(non_member) != XDP_PASS) wrong++;
            packets += 2;
        }
    });
    for (int round = 0; round < 60 || (packets < bounded(10'000) && round < 6000); round++) {
        const auto map = map_of(exact(round % 3 * 1000));
        const auto done = replace(replaced_by(map, "bad", true));
        EXPECT_TRUE(done) << done.error().message;
        EXPECT_FALSE(map_exists(before)) << "nobody holds the map that left";
        before = map.id();
    }
    stop = true;
    traffic.join();
    EXPECT_EQ(wrong, 0U) << "of " << packets;
    EXPECT_EQ(control.active, active);
    expect_rest();
    // Without that promise, and if anything else changes as well, the banks change.
    const auto map = map_of(exact(0)), other = map_of(exact(0));
    ASSERT_TRUE(replace(replaced_by(map, "bad", false)));
    EXPECT_NE(control.active, active);
    ASSERT_TRUE(replace(replaced_by(other, "other", true)));
    EXPECT_EQ(control.active, active);
    WantedTable wanted = replaced_by(map, "other", true);
    wanted.default_action = SIEVE_ACTION_DROP;
    ASSERT_TRUE(replace(wanted));
    EXPECT_NE(control.active, active);
    expect_rest();
}

// Packets run on one CPU while the table changes on the other. At every moment a member is dropped, a
// non-member passes, and the allowlist's exception is asked before the blocklist.
TEST_F(SetTableTest, NoPacketSeesHalfOfAChange) {
    const Image members_small = image_of({"10.0.0.1", "10.0.0.2"});
    const Image members_large = image_of({"10.0.0.1", "10.0.0.2"}, "src", 256);
    const Image friends = image_of({"10.0.0.2"});
    {
        const auto map = map_of(members_small), exception = map_of(friends);
        const auto done =
            replace({SIEVE_ACTION_PASS,
                     {{"friends", SIEVE_ACTION_PASS, exception.fd()}, {"bad", SIEVE_ACTION_DROP, map.fd()}}});
        ASSERT_TRUE(done) << done.error().message;
    }
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> packets = 0, wrong = 0;
    std::thread traffic([&] {
        const Bytes member = frame_from("10.0.0.1"), friendly = frame_from("10.0.0.2"),
                    non_member = frame_from("10.9.9.9");
        while (!stop) {
            if (*scratch_->run(member) != XDP_DROP) wrong++;
            if (*scratch_->run(friendly) != XDP_PASS) wrong++;
            if (*scratch_->run(non_member) != XDP_PASS) wrong++;
            packets += 3;
        }
    });
    // However fast the machine is: at least this many changes, and this many packets between them.
    for (int round = 0; round < 40 || (packets < bounded(10'000) && round < 6000); round++) {
        const auto map = map_of(round % 2 == 0 ? members_large : members_small);
        const auto exception = map_of(friends);
        WantedTable wanted;
        // The sets change their names, order, filters and neighbours, but not their meaning.
        if (round % 3 == 0)
            wanted.sets.push_back({fmt::format("extra{}", round), SIEVE_ACTION_COUNT, exception.fd()});
        wanted.sets.push_back({fmt::format("friends{}", round % 4), SIEVE_ACTION_PASS, exception.fd()});
        wanted.sets.push_back({fmt::format("bad{}", round % 5), SIEVE_ACTION_DROP, map.fd()});
        const auto done = replace(wanted);
        EXPECT_TRUE(done) << done.error().message;
    }
    stop = true;
    traffic.join();
    EXPECT_EQ(wrong, 0U) << "of " << packets;
    EXPECT_GE(packets, bounded(10'000));
}

} // namespace
} // namespace sieve::kernel
