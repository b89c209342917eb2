// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/undone_changes.hpp"

#include <gtest/gtest.h>

#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/table/apply.hpp"
#include "libsieve/control/table/edit_table.hpp"
#include "libsieve/control/table/swap.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class UndoneChanges : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    UndoneChanges() {
        kernel.put_filter(kernel.put("live").map_id,
                          *Image::load(files.image("live", {"192.0.2.1"}, counting())));
        kernel.put("other");
        KeySet keys(SIEVE_FIELD_SRC);
        keys.add(*parse_key("192.0.2.2", SIEVE_FIELD_SRC));
        EXPECT_TRUE(insert(kernel, eth0, "live", keys, {}));
        EXPECT_TRUE(erase(kernel, eth0, "live", keys, {}));
        EXPECT_TRUE(insert(kernel, eth0, "live", keys, {}));
    }
    static FeedSpec counting() {
        FeedSpec spec;
        spec.build.kind.kind = SIEVE_KIND_DDLCBF;
        spec.build.bits_per_key = 80;
        return spec;
    }
    SetSpec spec(const std::string& name) { return Files::set(name, files.feed(name, {"192.0.2.3"})); }
    static void expect_told(const std::vector<Warning>& warnings) {
        ASSERT_EQ(warnings.size(), 1U);
        EXPECT_EQ(warnings[0].kind, WarningKind::changes_undone);
        EXPECT_EQ(warnings[0].facts.set, "live");
        expect_says(warnings[0]);
    }
};

TEST_F(UndoneChanges, ASwapTellsThemOnce) {
    const auto swapped = swap(kernel, eth0, spec("live"), {});
    ASSERT_TRUE(swapped) << swapped.error().message;
    expect_told(swapped->warnings);
    EXPECT_TRUE(swap(kernel, eth0, spec("live"), {})->warnings.empty()) << "the new filter has none";
}

TEST_F(UndoneChanges, ALoadTellsThem) {
    TableSpec table;
    table.interface = "eth0";
    table.sets = {spec("other"), spec("live")};
    const auto applied = apply(kernel, table, {});
    ASSERT_TRUE(applied) << applied.error().message;
    expect_told(applied->warnings);
}

// One change is as much lost as many.
TEST_F(UndoneChanges, ASingleChangeIsTold) {
    ASSERT_TRUE(swap(kernel, eth0, Files::set("live", files.image("fresh", {"192.0.2.1"}, counting())), {}));
    KeySet key(SIEVE_FIELD_SRC);
    key.add(*parse_key("192.0.2.2", SIEVE_FIELD_SRC));
    ASSERT_TRUE(insert(kernel, eth0, "live", key, {}));
    const auto swapped = swap(kernel, eth0, spec("live"), {});
    ASSERT_TRUE(swapped) << swapped.error().message;
    ASSERT_EQ(swapped->warnings.size(), 1U);
    expect_says(swapped->warnings[0]);
}

TEST_F(UndoneChanges, WhatKeepsTheFilterUndoesNone) {
    EXPECT_TRUE(swap(kernel, eth0, spec("other"), {})->warnings.empty());
    const auto added = add_set(kernel, eth0, spec("new"), {}, false, {});
    ASSERT_TRUE(added) << added.error().message;
    EXPECT_TRUE(added->table.warnings.empty());
    const auto edited = edit_set(kernel, eth0, "live", {.position = Position{Position::Where::last, {}}}, {});
    ASSERT_TRUE(edited) << edited.error().message;
    EXPECT_TRUE(edited->table.warnings.empty());
}

} // namespace
} // namespace sieve::control
