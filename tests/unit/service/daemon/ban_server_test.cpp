// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/ban_server.hpp"

#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "unit/service/daemon/records.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service {
namespace {

using namespace std::chrono_literals;

// Longer than any event takes; a test that gets its events never waits for it.
constexpr auto most_patience = 60s;

class BanServerTest : public testing::Test, public test::LiveWorld {
  protected:
    test::RecordedLog log;
    watching::Statistics statistics{{}};
    LiveSets live{kernel, state, host, log, statistics};
    const std::string path = files.path("bans/net-1");
    const gid_t group = ::getegid();
    std::atomic<uid_t> next_uid{1000}; // whoever connects is this user, of that group
    std::atomic<int> accepted{0};
    std::unique_ptr<BanServer> server;

    void serve(std::chrono::milliseconds longest_talk) {
        auto configuration = std::make_shared<Configuration>();
        configuration->state_directory = files.path("state");
        SetConfiguration set = stream_set();
        set.sources = {BanSpec{}};
        configuration->sets.push_back(set);
        configuration->interfaces.push_back({.name = "eth0", .sets = {"block"}});
        const struct group* const found = ::getgrgid(group);
        if (found == nullptr) GTEST_SKIP() << "this group has no name";
        configuration->ban_group = found->gr_name;
        const auto who = [this](int) -> std::optional<ucred> {
            accepted++;
            return ucred{.pid = 1, .uid = next_uid, .gid = group};
        };
        server = std::make_unique<BanServer>(live, host, log,
                                             BanServerSettings{.longest_talk = longest_talk, .who = who});
        server->follow(configuration, path);
    }
    // A connection of this user that the server knows of.
    [[nodiscard]] UniqueFd connected(uid_t uid) {
        next_uid = uid;
        const int before = accepted;
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
            ADD_FAILURE() << errno_text(errno);
        const auto end = std::chrono::steady_clock::now() + most_patience;
        while (accepted == before && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
        return socket;
    }
    // One that says a part of a question, and no more.
    [[nodiscard]] UniqueFd slow(uid_t uid) {
        UniqueFd socket = connected(uid);
        (void)::send(socket.get(), "x", 1, MSG_NOSIGNAL);
        return socket;
    }
    [[nodiscard]] Result<std::optional<BanAnswer>> ask(uid_t uid) {
        next_uid = uid;
        return ask_about_bans(path, {.lists = true}, most_patience);
    }
    // What the server says to somebody who asks nothing more.
    static std::string answer_to(const UniqueFd& socket) {
        const auto heard =
            hear(socket.get(), 1 << 20, {.end = std::chrono::steady_clock::now() + most_patience});
        if (!heard) return heard.error().message;
        const auto answer = ban_answer_of(*heard);
        if (!answer) return answer.error().message;
        return answer->error ? answer->error->message : "";
    }
};

TEST_F(BanServerTest, WhoTricklesIsNotHeardForEver) {
    serve(50ms);
    const UniqueFd socket = connected(1000);
    const auto end = std::chrono::steady_clock::now() + most_patience;
    char byte = 0;
    bool answered = false;
    while (!answered && std::chrono::steady_clock::now() < end) {
        (void)::send(socket.get(), "x", 1, MSG_NOSIGNAL);
        std::this_thread::sleep_for(5ms);
        answered = ::recv(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
    }
    ASSERT_TRUE(answered);
    EXPECT_EQ(answer_to(socket), "the daemon's socket for bans: cannot be read: Connection timed out");
}

TEST_F(BanServerTest, ItsEndWaitsForNobody) {
    serve(1h);
    std::vector<UniqueFd> sockets;
    for (uid_t uid = 1000; uid < 1003; uid++) sockets.push_back(slow(uid));
    auto end = std::async(std::launch::async, [this] { server.reset(); });
    EXPECT_EQ(end.wait_for(most_patience), std::future_status::ready);
    for (const UniqueFd& socket : sockets)
        EXPECT_EQ(answer_to(socket), "xdp-sieved ends, or is being reloaded");
    sockets.clear();
}

TEST_F(BanServerTest, MembersLeavePlacesToOthersAndToRoot) {
    serve(1h);
    const std::string refusal =
        "xdp-sieved answers other questions of this user or group about bans; expected fewer at a time";
    std::vector<UniqueFd> sockets;
    for (int i = 0; i < 4; i++) sockets.push_back(slow(1000));
    EXPECT_EQ(answer_to(connected(1000)), refusal);
    for (uid_t uid : {1001U, 1002U})
        for (int i = 0; i < 4; i++) sockets.push_back(slow(uid));
    EXPECT_EQ(answer_to(connected(1003)), refusal);
    const auto answer = ask(0);
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(*answer);
    EXPECT_FALSE((*answer)->error);
    // One who ends makes room, and the command waits for that.
    sockets.erase(sockets.begin());
    const auto later = ask(1003);
    ASSERT_TRUE(later) << later.error().message;
    ASSERT_TRUE(*later);
    EXPECT_FALSE((*later)->error) << (*later)->error->message;
}

} // namespace
} // namespace sieve::service
