// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// etcd by its JSON gateway, and a view of keys that stays true whatever happens to etcd. etcdctl, which
// speaks another protocol, is the oracle.
#include <sys/eventfd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "fleet/servers.hpp"
#include "libsieve/fleet/servers/etcd_view.hpp"
#include "service/servers.hpp"

namespace sieve::fleet::test {
namespace {

using service::test::ScriptedServer;

// A whole answer with this body.
std::string answer_of(const std::string& body) {
    return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

TEST(EtcdPrefix, EndsAfterItsLastKey) {
    EXPECT_EQ(end_of_prefix("/a/"), "/a0");
    EXPECT_EQ(end_of_prefix("a\xff"), "b");
    EXPECT_EQ(end_of_prefix("\xff"), std::string(1, '\0'));
}

TEST(EtcdClientTest, ReadsWritesAndCompares) {
    const Etcd etcd;
    EtcdClient client(etcd.settings());
    // A value of any bytes.
    const std::string bytes("\0\xff\"\n", 4);
    auto done = client.commit({.conditions = {{"/f/a", 0}}, .puts = {{"/f/a", "one"}, {"/f/b", bytes}}});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->succeeded);
    EXPECT_EQ(etcd.ctl("get --print-value-only /f/a"), "one");
    etcd.ctl("put /g/c other");
    auto keys = client.read_prefix("/f/");
    ASSERT_TRUE(keys) << keys.error().message;
    ASSERT_EQ(keys->keys.size(), 2U);
    EXPECT_EQ(keys->keys["/f/b"].value, bytes);
    EXPECT_EQ(keys->keys["/f/a"].modified, done->revision);
    EXPECT_EQ(keys->revision, done->revision + 1);
    // A condition that does not hold writes nothing; a removal removes.
    done = client.commit({.conditions = {{"/f/a", 0}}, .puts = {{"/f/a", "two"}}});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_FALSE(done->succeeded);
    EXPECT_EQ(etcd.ctl("get --print-value-only /f/a"), "one");
    done = client.commit({.conditions = {{"/f/a", keys->keys["/f/a"].modified}},
                          .puts = {{"/f/a", "two"}},
                          .removals = {"/f/b"}});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->succeeded);
    EXPECT_EQ(etcd.ctl("get --print-value-only --prefix /f/"), "two");
}

TEST(EtcdClientTest, KeysEndWithTheirLease) {
    const Etcd etcd;
    EtcdClient client(etcd.settings());
    const auto lease = client.grant_lease(std::chrono::seconds(60));
    ASSERT_TRUE(lease) << lease.error().message;
    ASSERT_TRUE(client.commit({.puts = {{"/f/node", "here", *lease}}}));
    const auto kept = client.keep_alive(*lease);
    ASSERT_TRUE(kept) << kept.error().message;
    EXPECT_TRUE(*kept);
    EXPECT_EQ(etcd.ctl("get --print-value-only /f/node"), "here");
    ASSERT_TRUE(client.revoke_lease(*lease));
    EXPECT_EQ(etcd.ctl("get --print-value-only /f/node"), "");
    const auto gone = client.keep_alive(*lease);
    ASSERT_TRUE(gone) << gone.error().message;
    EXPECT_FALSE(*gone);
}

TEST(EtcdClientTest, AsksTheNextEndpoint) {
    const Etcd etcd;
    EtcdSettings settings = etcd.settings();
    settings.endpoints.insert(settings.endpoints.begin(), "http://localhost:2999");
    EtcdClient client(settings);
    const auto read = client.read("/a");
    ASSERT_TRUE(read) << read.error().message;
    settings.endpoints = {"http://localhost:2998", "http://localhost:2999"};
    EtcdClient none(settings);
    const auto failed = none.read("/a");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind, ErrorKind::bad_input);
    for (const char* port : {"2998", "2999"})
        EXPECT_NE(failed.error().message.find(port), std::string::npos) << failed.error().message;
}

TEST(EtcdClientTest, SaysWhatIsNoEtcd) {
    const Store store;
    EtcdSettings settings;
    settings.endpoints = {"http://localhost:8080"};
    const auto failed = EtcdClient(settings).read("/a");
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("expected etcd"), std::string::npos) << failed.error().message;
}

// Such as a server that somebody has taken over: what has no revision, or is about other keys.
TEST(EtcdClientTest, TakesNoAnswerToAnotherQuestion) {
    for (const char* answer :
         {"{}", "{\"kvs\":7}", R"({"header":{"revision":"5"},"kvs":[{"value":"e30="}]})",
          R"({"header":{"revision":"5"},"kvs":[{"key":"L2IvYw==","value":"e30="}]})"}) { // "/b/c"
        const ScriptedServer server(answer_of(answer));
        EtcdSettings settings;
        settings.endpoints = {server.url("")};
        EtcdClient client(settings);
        for (const auto& read : {client.read("/a/"), client.read_prefix("/a/")}) {
            ASSERT_FALSE(read) << answer;
            EXPECT_NE(read.error().message.find("expected etcd"), std::string::npos) << read.error().message;
        }
    }
}

// Whatever its values are.
TEST(EtcdClientTest, AWatchMayBeOfAnyForm) {
    for (const char* line : {R"({"result":7})", R"({"result":{"created":"x"}})",
                             R"({"result":{"canceled":[]}})", R"({"result":{"events":{"kv":1}}})"}) {
        const ScriptedServer server(answer_of(std::string(line) + '\n'));
        EtcdSettings settings;
        settings.endpoints = {server.url("")};
        const auto end = EtcdClient(settings).watch("/a/", 1, std::chrono::seconds(60),
                                                    [](std::int64_t, const auto&) { return true; });
        ASSERT_TRUE(end) << end.error().message;
        EXPECT_EQ(*end, WatchEnd::ended) << line;
    }
}

TEST(EtcdClientTest, NeedsTheRightCertificates) {
    const Etcd etcd(2379, Tls::of_both);
    EXPECT_TRUE(EtcdClient(etcd.settings()).read("/a"));
    EtcdSettings stranger = etcd.settings();
    stranger.access.server.certificate.clear();
    stranger.access.server.key.clear();
    EXPECT_FALSE(EtcdClient(stranger).read("/a"));
    EtcdSettings trusting = etcd.settings();
    trusting.access.server.authorities.clear(); // the system's authorities do not know this server
    EXPECT_FALSE(EtcdClient(trusting).read("/a"));
}

TEST(EtcdClientTest, GetsANewTokenWhenTheOldOneEnded) {
    Etcd etcd;
    etcd.ctl("user add root:secret");
    etcd.ctl("user grant-role root root");
    etcd.ctl("auth enable");
    EXPECT_FALSE(EtcdClient(etcd.settings()).read("/a")) << "without a name";
    EtcdSettings settings = etcd.settings();
    settings.user = "root";
    settings.password = "wrong";
    const auto wrong = EtcdClient(settings).read("/a");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("does not take user root"), std::string::npos)
        << wrong.error().message;
    EXPECT_EQ(wrong.error().message.find("wrong"), std::string::npos) << "shows the password";
    settings.password = "secret";
    EtcdClient client(settings);
    ASSERT_TRUE(client.read("/a"));
    etcd.kill();
    etcd.start(); // simple tokens end with the process
    const auto again = client.read("/a");
    EXPECT_TRUE(again) << again.error().message;
}

// Follows keys on a thread of its own.
class Following {
  public:
    explicit Following(const EtcdSettings& settings)
        : cancel_(::eventfd(0, EFD_CLOEXEC)), client_(settings, cancel_.get()), thread_([this] { run(); }) {}
    ~Following() {
        const std::uint64_t one = 1;
        (void)!::write(cancel_.get(), &one, sizeof(one));
        thread_.join();
    }
    // Whether the view comes to these values.
    bool sees(const std::map<std::string, std::string>& expected) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return seen_ == expected; });
    }
    bool has_trouble() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return troubles_ > 0; });
    }
    std::size_t largest_step() {
        const std::lock_guard lock(mutex_);
        return tellings_;
    }

  private:
    void run() {
        const ViewOptions options{
            .backoff = {.first = std::chrono::milliseconds(20), .most = std::chrono::milliseconds(100)}};
        follow_keys(client_, "/f/", options,
                    {.changed =
                         [this](const EtcdKeys& keys) {
                             const std::lock_guard lock(mutex_);
                             seen_.clear();
                             for (const auto& [key, value] : keys.keys) seen_[key] = value.value;
                             tellings_++;
                             changed_.notify_all();
                             return true;
                         },
                     .trouble =
                         [this](const Error&, unsigned) {
                             const std::lock_guard lock(mutex_);
                             troubles_++;
                             changed_.notify_all();
                         }});
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string> seen_{{"nothing", "yet"}};
    unsigned troubles_ = 0;
    std::size_t tellings_ = 0;
    UniqueFd cancel_;
    EtcdClient client_;
    std::thread thread_;
};

TEST(EtcdViewTest, FollowsChangesAndTransactionsAsAWhole) {
    const Etcd etcd;
    Following view(etcd.settings());
    ASSERT_TRUE(view.sees({}));
    etcd.ctl("put /f/a 1");
    ASSERT_TRUE(view.sees({{"/f/a", "1"}}));
    etcd.ctl("put /g/other 1");
    EtcdClient client(etcd.settings());
    const std::size_t before = view.largest_step();
    ASSERT_TRUE(client.commit({.puts = {{"/f/a", "2"}, {"/f/b", "2"}}}));
    ASSERT_TRUE(view.sees({{"/f/a", "2"}, {"/f/b", "2"}}));
    EXPECT_EQ(view.largest_step(), before + 1) << "a transaction was told in parts";
    etcd.ctl("del /f/a");
    EXPECT_TRUE(view.sees({{"/f/b", "2"}}));
}

TEST(EtcdViewTest, SurvivesARestart) {
    Etcd etcd;
    etcd.ctl("put /f/a 1");
    Following view(etcd.settings());
    ASSERT_TRUE(view.sees({{"/f/a", "1"}}));
    etcd.kill();
    ASSERT_TRUE(view.has_trouble());
    etcd.start();
    etcd.ctl("put /f/a 2");
    EXPECT_TRUE(view.sees({{"/f/a", "2"}}));
}

TEST(EtcdViewTest, SurvivesLostData) {
    Etcd etcd;
    for (int i = 0; i < 5; i++) etcd.ctl("put /f/a " + std::to_string(i));
    etcd.ctl("put /f/b 1");
    Following view(etcd.settings());
    ASSERT_TRUE(view.sees({{"/f/a", "4"}, {"/f/b", "1"}}));
    etcd.lose_data();
    etcd.start(); // at revision 1 again
    ASSERT_TRUE(view.sees({}));
    etcd.ctl("put /f/a 4");
    EXPECT_TRUE(view.sees({{"/f/a", "4"}}));
}

// It would be asked as fast as it answers.
TEST(EtcdViewTest, WatchesThatEndAtOnceAreTrouble) {
    const ScriptedServer server([](int connection, const std::string& request) {
        const bool watch = request.find("/v3/watch") != std::string::npos;
        service::test::send_all(connection,
                                answer_of(watch ? "{\"result\":{\"created\":true,\"header\":{\"revision\":"
                                                  "\"5\"}}}\n"
                                                : R"({"header":{"revision":"5"}})"));
    });
    EtcdSettings settings;
    settings.endpoints = {server.url("")};
    Following view(settings);
    EXPECT_TRUE(view.has_trouble());
}

// What a watch says that is asked for changes which etcd has compacted away, or has never had.
TEST(EtcdClientTest, WatchesSayWhenTheyMissSomething) {
    const Etcd etcd;
    for (int i = 0; i < 4; i++) etcd.ctl("put /f/a " + std::to_string(i));
    etcd.ctl("compaction 4");
    EtcdClient client(etcd.settings());
    const auto nothing = [](std::int64_t, const std::vector<EtcdChange>&) { return true; };
    const auto time = std::chrono::seconds(60);
    auto end = client.watch("/f/", 2, time, nothing);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(*end, WatchEnd::compacted);
    end = client.watch("/f/", 1000, time, nothing);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(*end, WatchEnd::behind);
    std::vector<std::string> values;
    end = client.watch("/f/", 4, time, [&](std::int64_t, const std::vector<EtcdChange>& changes) {
        for (const EtcdChange& change : changes) values.push_back(change.value.value);
        return values.size() < 2;
    });
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(*end, WatchEnd::stopped);
    EXPECT_EQ(values, (std::vector<std::string>{"2", "3"}));
}

} // namespace
} // namespace sieve::fleet::test
