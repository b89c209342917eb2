// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/change_table.hpp"

#include <gtest/gtest.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class ChangeTable : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    NextTable change;

    ChangeTable() {
        kernel.put("a", SIEVE_ACTION_COUNT);
        kernel.put("b", SIEVE_ACTION_DROP, true);
        change.table.interface = "eth0";
    }
    // The set keeps its filter.
    void keep(const std::string& name, std::optional<WantedAction> action = {}) {
        SetSpec set;
        set.name = name;
        set.action = std::move(action);
        const kernel::SetInForce* now = kernel.running.table.find(name);
        change.table.sets.push_back(std::move(set));
        change.kept.emplace_back(KeptFilter{now->map_id, now->exact_id});
    }
    void bring(const std::string& name) {
        change.table.sets.push_back(Files::set(name, files.feed(name, {"192.0.2.1", "192.0.2.2"})));
        change.kept.emplace_back();
    }
    Result<TableChanged> change_now() {
        SIEVE_ASSIGN(change.actions, find_actions(kernel, change.table.sets, change.table.default_action));
        SIEVE_ASSIGN(PreparedTable coming, PreparedTable::prepare(kernel, change, {}, {}));
        SIEVE_ASSIGN(const Held lock, hold_lock(kernel, {}));
        SIEVE_TRY(coming.check());
        return coming.commit();
    }
    void refused(ErrorKind kind) {
        const auto before = kernel.running.table.sets.size();
        const auto changed = change_now();
        ASSERT_FALSE(changed);
        EXPECT_EQ(changed.error().kind, kind) << changed.error().message;
        EXPECT_FALSE(kernel.changed());
        EXPECT_EQ(kernel.running.table.sets.size(), before);
        EXPECT_EQ(*kernel.open_maps, 0);
    }
};

TEST_F(ChangeTable, OrderActionsAndDefaultNeedNoFilter) {
    const std::uint32_t a = kernel.running.table.find("a")->map_id;
    const std::uint32_t b = kernel.running.table.find("b")->exact_id;
    keep("b", WantedAction{SIEVE_ACTION_COUNT, {}});
    keep("a", WantedAction{SIEVE_ACTION_PASS, {}});
    change.table.default_action = SIEVE_ACTION_DROP;
    change.table.unreadable = SIEVE_ACTION_PASS;
    kernel.running.table.unreadable = SIEVE_ACTION_DROP;
    const auto changed = change_now();
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_TRUE(changed->brought_in.empty());
    // A new default of drop lets replies pass.
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"lock", "attach notes", "seed", "replace", "learn", "unlock"}));
    const kernel::TableInForce& now = kernel.running.table;
    EXPECT_EQ(now.default_action, SIEVE_ACTION_DROP);
    EXPECT_EQ(now.replies, SIEVE_ACTION_PASS);
    EXPECT_EQ(now.unreadable, SIEVE_ACTION_PASS);
    ASSERT_EQ(now.sets.size(), 2U);
    EXPECT_EQ(now.sets[0].name, "b");
    EXPECT_EQ(now.sets[0].action, SIEVE_ACTION_COUNT);
    EXPECT_EQ(now.sets[0].exact_id, b);
    EXPECT_EQ(now.sets[1].map_id, a);
    EXPECT_EQ(now.sets[1].action, SIEVE_ACTION_PASS);
}

TEST_F(ChangeTable, OnlyNewFiltersAreBroughtInAndTested) {
    keep("a", WantedAction{SIEVE_ACTION_COUNT, {}});
    bring("c");
    const std::uint32_t a = kernel.running.table.find("a")->map_id;
    const auto changed = change_now();
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_EQ(kernel.count("bring in c"), 1U);
    EXPECT_EQ(kernel.count("test c"), 1U);
    EXPECT_EQ(kernel.count("bring in a"), 0U);
    ASSERT_EQ(kernel.running.table.sets.size(), 2U);
    EXPECT_EQ(kernel.running.table.find("a")->map_id, a);
    EXPECT_EQ(kernel.running.table.find("b"), nullptr);
    ASSERT_EQ(changed->brought_in.size(), 1U);
    EXPECT_EQ(changed->brought_in[0].name, "c");
}

TEST_F(ChangeTable, AKeptFilterThatIsAnotherByNowIsRefused) {
    keep("a");
    bring("c");
    change.kept[0]->map_id++;
    refused(ErrorKind::changed_meanwhile);
    EXPECT_EQ(kernel.count("trial"), 0U); // before any work
}

TEST_F(ChangeTable, SomebodyMayChangeItWhileFiltersAreMade) {
    keep("b");
    bring("c");
    kernel.once("lock", [&] { kernel.running.table.sets.pop_back(); });
    const auto changed = change_now();
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error().kind, ErrorKind::changed_meanwhile);
    EXPECT_EQ(kernel.count("replace"), 0U);
}

TEST_F(ChangeTable, ASetThatAnswersWrongChangesNothing) {
    keep("a");
    bring("c");
    kernel.refuse("test c", ErrorKind::bad_input);
    refused(ErrorKind::bad_input);
}

TEST_F(ChangeTable, NeedsOurProgram) {
    keep("a");
    kernel.running = {};
    refused(ErrorKind::not_attached);
}

} // namespace
} // namespace sieve::control
