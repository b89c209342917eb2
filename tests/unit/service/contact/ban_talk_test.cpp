// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/contact/ban_talk.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "libsieve/util/system/event.hpp"
#include "unit/control/files.hpp"
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

// Whether the other side has said all that it will say.
bool has_hung_up(int socket) {
    pollfd wait{.fd = socket, .events = POLLRDHUP, .revents = 0};
    return ::poll(&wait, 1, -1) == 1 && (wait.revents & POLLRDHUP) != 0;
}

struct Pair {
    UniqueFd one;
    UniqueFd other;
    Pair() {
        int fds[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
            throw std::runtime_error("socketpair");
        one = UniqueFd(fds[0]);
        other = UniqueFd(fds[1]);
    }
};

TEST(BanTalk, NeitherSideWaitsForEver) {
    const Pair pair;
    const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::milliseconds(20); };
    EXPECT_EQ(hear(pair.one.get(), 1 << 20, {.end = soon()}).error().kind, ErrorKind::kernel_refused);
    const std::string much(4 << 20, 'x'); // more than a socket takes
    EXPECT_EQ(say(pair.one.get(), much, {.end = soon()}).error().kind, ErrorKind::kernel_refused);
}

TEST(BanTalk, AnEventEndsATalk) {
    const Pair pair;
    const UniqueFd over = make_event().value();
    set_event(over.get());
    const TalkLimit limit{.end = std::chrono::steady_clock::now() + std::chrono::hours(1),
                          .over = over.get()};
    EXPECT_EQ(hear(pair.one.get(), 1 << 20, limit).error().kind, ErrorKind::busy);
    // What fits is said all the same.
    EXPECT_TRUE(say(pair.one.get(), "x", limit));
    EXPECT_EQ(say(pair.one.get(), std::string(4 << 20, 'x'), limit).error().kind, ErrorKind::busy);
}

UniqueFd listen_at(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener.get(), 0), 0);
    return listener;
}

// It may have kept the ban before.
TEST(BanTalk, ADaemonThatEndsBeforeItAnswersIsNoOtherVersion) {
    test::Files files;
    const BanQuestion question{.request = {.set = "block", .changes = changes}};
    int asked = 0;
    const auto ask = [&](bool reads, const std::string& says) {
        const std::string path = files.path(fmt::format("socket{}", asked++));
        const UniqueFd listener = listen_at(path);
        std::thread daemon([&] {
            const UniqueFd talk(::accept(listener.get(), nullptr, nullptr));
            const TalkLimit limit{.end = std::chrono::steady_clock::now() + std::chrono::minutes(1)};
            if (reads)
                EXPECT_EQ(hear(talk.get(), 1 << 20, limit).value(), bytes_of(question));
            else
                EXPECT_TRUE(has_hung_up(talk.get())); // and what it said stays unread
            EXPECT_TRUE(say(talk.get(), says, limit));
        });
        auto answer = ask_about_bans(path, question, std::chrono::minutes(1));
        daemon.join();
        EXPECT_FALSE(answer);
        return answer ? Error{} : answer.error();
    };
    const std::string ended = "xdp-sieved ended before it answered; a change may be kept all the same";
    for (const bool reads : {true, false}) EXPECT_EQ(ask(reads, "").message, ended) << reads;
    EXPECT_EQ(ask(true, "xdp-sieve s").message, ended);
    EXPECT_EQ(ask(true, "").kind, ErrorKind::kernel_refused);
    EXPECT_NE(ask(true, "xdp-sieve says 2\n").message, ended);
}

// One that accepts nobody, then one that has no room for more.
TEST(BanTalk, ADaemonThatDoesNotAnswerIsAnError) {
    test::Files files;
    const std::string path = files.path("socket");
    const UniqueFd listener = listen_at(path);
    for (int i = 0; i < 2; i++) {
        const auto answer = ask_about_bans(path, {.lists = true}, std::chrono::milliseconds(20));
        ASSERT_FALSE(answer);
        EXPECT_EQ(answer.error().kind, ErrorKind::kernel_refused);
        EXPECT_EQ(answer.error().message,
                  "xdp-sieved did not answer about bans within 1 s; a change may be kept all the same");
    }
}

} // namespace
} // namespace sieve::service
