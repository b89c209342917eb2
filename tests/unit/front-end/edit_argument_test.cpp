// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/edit_argument.hpp"

#include <gtest/gtest.h>

namespace sieve::cli {
namespace {

using Where = control::Position::Where;

TEST(EditArgument, SaysWhatBecomesOfASet) {
    const auto edit = parse_edit({"before=other", "action=pass"});
    ASSERT_TRUE(edit) << edit.error().message;
    EXPECT_EQ(edit->action->action, SIEVE_ACTION_PASS);
    EXPECT_EQ(edit->position->where, Where::before);
    EXPECT_EQ(edit->position->other, "other");
    EXPECT_EQ(parse_edit({"redirect=cpu:3"})->action->target, "cpu:3");
    EXPECT_EQ(parse_edit({"after=x"})->position->where, Where::after);
    EXPECT_EQ(parse_edit({"first"})->position->where, Where::first);
    EXPECT_EQ(parse_edit({"last"})->position->where, Where::last);
    EXPECT_FALSE(parse_edit({"last"})->action);
    EXPECT_EQ(parse_position({})->where, Where::last);
    EXPECT_EQ(parse_position({"before=x"})->other, "x");
}

TEST(EditArgument, ChangesSomeFieldsOfACondition) {
    const auto edit = parse_edit({"dport=22,443", "proto=any"});
    ASSERT_TRUE(edit) << edit.error().message;
    EXPECT_EQ(edit->condition.fields, SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO);
    EXPECT_EQ(control::describe_condition(edit->condition.to), "dport=22,443");
    EXPECT_EQ(parse_edit({"sport=any"})->condition.fields, std::uint32_t{SIEVE_FIELD_SPORT});
    EXPECT_EQ(parse_edit({"first"})->condition.fields, 0U);
}

TEST(EditArgument, RefusesWhatIsNoEdit) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"action"},
                                               {"action="},
                                               {"action=reject"},
                                               {"before"},
                                               {"before="},
                                               {"first=x"},
                                               {"last="},
                                               {"x=y"},
                                               {"dport"},
                                               {"dport="},
                                               {"sport=ssh"},
                                               {"dport=22", "dport=443"},
                                               {""},
                                               {"="},
                                               {"first", "last"},
                                               {"before=a", "after=b"},
                                               {"action=drop", "action=drop"},
                                               {"action=drop", "redirect=eth1"}}) {
        const auto edit = parse_edit(words);
        ASSERT_FALSE(edit) << words.back();
        EXPECT_EQ(edit.error().kind, ErrorKind::invalid_request);
        EXPECT_EQ(edit.error().message.find("`" + words.back() + "`"), 0U) << edit.error().message;
    }
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"action=drop"}, {"redirect=eth1"}, {"dport=any"}, {"first", "last"}, {"x"}})
        EXPECT_FALSE(parse_position(words)) << words.back();
}

} // namespace
} // namespace sieve::cli
