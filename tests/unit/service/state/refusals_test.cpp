// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/refusals.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "libsieve/service/state/state_directory.hpp"
#include "unit/control/files.hpp"

namespace sieve::service {
namespace {

using test::Files;

RefusedList refused_list_of(std::uint64_t entries) {
    return {.guard = "shrink",
            .why = "set b: the new list has few",
            .digest = "0123",
            .entries = entries,
            .entries_before = 1000,
            .addresses = {0x1p33, 1e38},
            .refused_at = 5};
}

TEST(Refusals, AreFilesOfTheStateDirectory) {
    const Files files;
    const std::string folder = files.path("state");
    EXPECT_FALSE(read_refusal(folder, "b"));
    EXPECT_FALSE(write_refusal(folder, "b", refused_list_of(1))) << "there is no state directory";
    std::filesystem::create_directory(folder);
    ASSERT_TRUE(write_refusal(folder, "b", refused_list_of(7)));
    ASSERT_TRUE(write_refusal(folder, "b.list", refused_list_of(8)));
    EXPECT_TRUE(std::filesystem::exists(folder + "/b.refused"));
    const auto list = read_refusal(folder, "b");
    ASSERT_TRUE(list);
    EXPECT_TRUE(list->is_same_list(refused_list_of(7)));
    EXPECT_FALSE(list->is_same_list(refused_list_of(8)));
    EXPECT_EQ(list->why, refused_list_of(7).why);
    EXPECT_EQ(list->refused_at, 5);
    EXPECT_FALSE(list->accepted);
    std::vector<std::string> sets = refused_sets(folder);
    std::ranges::sort(sets);
    EXPECT_EQ(sets, (std::vector<std::string>{"b", "b.list"}));
    remove_refusal(folder, "b");
    remove_refusal(folder, "b");
    EXPECT_EQ(refused_sets(folder), std::vector<std::string>{"b.list"});
    // A file on its way to its name is none, and neither is a damaged one.
    EXPECT_EQ(refused_set_of("b.refused.x7Gh2k"), std::nullopt);
    EXPECT_EQ(refused_set_of(".refused"), std::nullopt);
    for (const char* damaged : {"", "{", "[]", "{\"entries\": -1}", "{\"digest\": 7}", "{}"}) {
        std::ofstream(folder + "/b.refused") << damaged;
        EXPECT_FALSE(read_refusal(folder, "b")) << damaged;
    }
}

TEST(Refusals, AnotherListMakesTheAnswerVoid) {
    const Files files;
    const auto state = StateDirectory::open(files.path("state"), std::chrono::milliseconds(0), {}).value();
    ASSERT_TRUE(state.note_refused("b", refused_list_of(7)));
    RefusedList list = *state.refused("b");
    EXPECT_FALSE(state.is_accepted("b", list));
    list.accepted = true;
    ASSERT_TRUE(write_refusal(files.path("state"), "b", list));
    EXPECT_TRUE(state.is_accepted("b", refused_list_of(7)));
    EXPECT_FALSE(state.is_accepted("b", refused_list_of(8)));
    EXPECT_EQ(state.accepted(), (std::map<std::string, std::string>{{"b", "0123"}}));
    ASSERT_TRUE(state.note_refused("b", refused_list_of(7))) << "again";
    EXPECT_TRUE(state.is_accepted("b", refused_list_of(7)));
    ASSERT_TRUE(state.note_refused("b", refused_list_of(8)));
    EXPECT_FALSE(state.is_accepted("b", refused_list_of(7)));
    EXPECT_FALSE(state.is_accepted("b", refused_list_of(8)));
    state.forget_refused("b");
    EXPECT_FALSE(state.refused("b"));
    EXPECT_TRUE(state.accepted().empty());
}

// The daemon may take the list while a person accepts it once more.
TEST(Refusals, AnAnswerBringsNothingBack) {
    const Files files;
    const auto state = StateDirectory::open(files.path("state"), std::chrono::milliseconds(0), {}).value();
    ASSERT_TRUE(state.note_refused("b", refused_list_of(7)));
    RefusedList list = *state.refused("b");
    list.accepted = true;
    EXPECT_TRUE(replace_refusal(state.path(), "b", list).value());
    EXPECT_TRUE(state.is_accepted("b", refused_list_of(7)));
    state.forget_refused("b");
    EXPECT_FALSE(replace_refusal(state.path(), "b", list).value());
    EXPECT_FALSE(state.refused("b"));
    for (const auto& file : std::filesystem::directory_iterator(state.path()))
        EXPECT_FALSE(file.path().filename().string().starts_with("b.")) << file.path();
    EXPECT_FALSE(replace_refusal(files.path("nowhere"), "b", list));
}

// Anybody could accept whatever he likes.
TEST(Refusals, CountNothingWhereOthersMayWrite) {
    const Files files;
    const auto state = StateDirectory::open(files.path("state"), std::chrono::milliseconds(0), {}).value();
    RefusedList list = refused_list_of(7);
    list.accepted = true;
    ASSERT_TRUE(write_refusal(files.path("state"), "b", list));
    ASSERT_TRUE(state.is_accepted("b", list));
    std::filesystem::permissions(files.path("state"), std::filesystem::perms::all);
    EXPECT_FALSE(state.is_accepted("b", list));
    EXPECT_TRUE(state.accepted().empty());
}

} // namespace
} // namespace sieve::service
