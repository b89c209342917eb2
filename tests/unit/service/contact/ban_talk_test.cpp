// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/contact/ban_talk.hpp"

#include <gtest/gtest.h>

#include "unit/service/live/live_world.hpp"

namespace sieve::service {
namespace {

using live::BanChange;
using live::BanStep;
using test::prefix_of;

const std::vector<BanChange> changes{{.prefix = prefix_of("192.0.2.1"), .ban = {.reason = "why"}},
                                     {.step = BanStep::remove, .prefix = prefix_of("2001:db8::/32")},
                                     {.step = BanStep::flush}};

TEST(BanTalk, AQuestionArrives) {
    BanQuestion question;
    question.request = {.set = "block", .changes = changes, .counts = true};
    const auto heard = ban_question_of(bytes_of(question));
    ASSERT_TRUE(heard);
    EXPECT_FALSE(heard->lists);
    EXPECT_EQ(heard->request.set, "block");
    EXPECT_TRUE(heard->request.counts);
    EXPECT_EQ(heard->request.changes, changes);
    EXPECT_TRUE(ban_question_of(bytes_of(BanQuestion{.lists = true}))->lists);
}

TEST(BanTalk, AnAnswerArrives) {
    BanAnswer answer{.error = Error{ErrorKind::no, "no", {}},
                     .set = "block",
                     .absent = {prefix_of("192.0.2.9")},
                     .lifted = 7,
                     .not_in_force = "a new filter is being built",
                     .fails = true,
                     .bans = {{"block", {changes.front()}}, {"guests", {}}}};
    auto heard = ban_answer_of(bytes_of(answer));
    ASSERT_TRUE(heard);
    ASSERT_TRUE(heard->error);
    EXPECT_EQ(heard->error->kind, ErrorKind::no);
    EXPECT_EQ(heard->error->message, "no");
    EXPECT_EQ(heard->set, "block");
    EXPECT_EQ(heard->absent, answer.absent);
    EXPECT_EQ(heard->lifted, 7U);
    EXPECT_EQ(heard->not_in_force, answer.not_in_force);
    EXPECT_TRUE(heard->fails);
    ASSERT_EQ(heard->bans.size(), 2U);
    EXPECT_EQ(heard->bans[0].bans, std::vector{changes.front()});
    EXPECT_EQ(heard->bans[1].set, "guests");
    answer.error.reset();
    EXPECT_FALSE(ban_answer_of(bytes_of(answer))->error);
}

// Whoever may ask is not trusted to ask well.
TEST(BanTalk, WhatIsCutOrLongerIsRefused) {
    BanQuestion question;
    question.request = {.set = "block", .changes = changes};
    const std::string asked = bytes_of(question);
    const std::string said = bytes_of(BanAnswer{.set = "block", .bans = {{"block", changes}}});
    for (std::size_t cut = 0; cut < asked.size(); cut++)
        EXPECT_FALSE(ban_question_of(asked.substr(0, cut))) << cut;
    for (std::size_t cut = 0; cut < said.size(); cut++)
        EXPECT_FALSE(ban_answer_of(said.substr(0, cut))) << cut;
    EXPECT_FALSE(ban_question_of(asked + '\0'));
    EXPECT_FALSE(ban_answer_of(said + '\0'));
    // Lengths beyond all there is.
    for (std::size_t at = 17; at < asked.size(); at += 8) {
        std::string other = asked;
        other.replace(at, 8, 8, '\xff');
        (void)ban_question_of(other);
    }
    EXPECT_FALSE(ban_question_of("xdp-sieve asks 2\n"));
}

} // namespace
} // namespace sieve::service
