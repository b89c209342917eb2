// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whole cycles as `apply` runs them: a configuration from a file, real servers, real children, the real
// kernel. Whatever goes wrong with a list, the last good one stays in force, and there is one error that says
// why.
#include "libsieve/service/reconcile/cycle.hpp"

#include <sys/mount.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <mutex>

#include <gtest/gtest.h>

#include "bpf/own_network.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/unload.hpp"
#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/sandbox/child.hpp"
#include "libsieve/service/sandbox/child_messages.hpp"
#include "service/servers.hpp"
#include "service/support.hpp"

namespace sieve::service {
namespace {

using namespace test;

#define EXPECT_SAYS(text, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, text)

class RealCycle : public testing::Test {
  protected:
    static void SetUpTestSuite() { nginx_ = std::make_unique<Nginx>(); }
    static void TearDownTestSuite() { nginx_.reset(); }
    void SetUp() override {
        ASSERT_TRUE(sieve::test::ip("link add sieve0 type veth peer name sieve1"));
        ASSERT_TRUE(sieve::test::ip("link set sieve0 up"));
        ASSERT_EQ(::mkdir(folder.path("state").c_str(), 0700), 0);
        options.sandbox = quick_settings();
    }
    void TearDown() override {
        sieve::test::take_programs_away();
        EXPECT_TRUE(sieve::test::ip("link delete sieve0"));
    }

    void configure(const std::string& sources, const std::string& more = "") const {
        folder.write("xdp-sieve.toml", "[service]\nstate-directory = \"" + folder.path("state") +
                                           "\"\n[[interface]]\nname = \"sieve0\"\nsets = [\"bad\"]\n" +
                                           "[set.bad]\nsources = " + sources + "\n" + more + "\n");
    }
    Result<CycleReport> apply(const control::Observer& observer = {}) {
        SIEVE_ASSIGN(const Configuration configuration, load_configuration(folder.path("xdp-sieve.toml")));
        SIEVE_ASSIGN(const StateDirectory state,
                     StateDirectory::open(configuration.state_directory, std::chrono::milliseconds(10), {}));
        RealHostAddresses host;
        control::RealKernel kernel;
        return run_cycle(kernel, configuration, state, host, options, observer);
    }
    // The identity of the filter in force; empty if there is none.
    static std::string in_force() {
        control::RealKernel kernel;
        const auto interface = kernel.find_interface("sieve0");
        if (!interface) return {};
        const auto hook = kernel.read_hook(*interface, kernel::HookPoint::xdp);
        if (!hook || !hook->ours) return {};
        const kernel::TableInForce table = kernel.read_table(*hook);
        const kernel::SetInForce* set = table.find("bad");
        const auto filter = set == nullptr ? failure(ErrorKind::no, "") : kernel.read_filter(set->map_id);
        return filter ? identity_text(filter->file) : std::string();
    }
    void succeeds() {
        const auto report = apply();
        ASSERT_TRUE(report) << report.error().message;
        for (const HookReport& hook : report->hooks) EXPECT_FALSE(hook.error) << hook.error->message;
        EXPECT_NE(in_force(), "");
    }
    // It fails, says this, and what was in force still is, and is still remembered.
    void fails(const std::string& says) {
        const std::string before = in_force();
        const auto report = apply();
        ASSERT_FALSE(report) << says;
        EXPECT_SAYS(report.error().message, says);
        EXPECT_EQ(in_force(), before);
        const auto state = StateDirectory::look(folder.path("state"));
        const auto record = state.read("bad", [](const std::string& text) { ADD_FAILURE() << text; });
        ASSERT_TRUE(record);
        EXPECT_EQ(record->identity, before);
    }
    std::string good_file() { return "\"" + folder.write("good.txt", "192.0.2.1\n192.0.2.2\n") + "\""; }

    static inline std::unique_ptr<Nginx> nginx_;
    Folder folder;
    CycleOptions options;
};

TEST_F(RealCycle, AServersListIsInForceAndThenUnchanged) {
    nginx_->put("tagged.txt", "192.0.2.1\n");
    configure("{ url = \"https://localhost:8443/tagged.txt\", certificates = \"" + nginx_->authority() +
              "\" }");
    succeeds();
    const std::string first = in_force();
    succeeds();
    EXPECT_EQ(in_force(), first);
    nginx_->put("tagged.txt", "192.0.2.1\n192.0.2.9\n");
    succeeds();
    EXPECT_NE(in_force(), first);
}

TEST_F(RealCycle, SourcesOfAllSortsMakeOneList) {
    nginx_->put("list.txt", "192.0.2.1\n");
    ASSERT_EQ(::mkdir(folder.path("lists").c_str(), 0755), 0);
    folder.write("lists/a.txt", "192.0.2.2\n");
    folder.write("b.netset", "192.0.2.3\n");
    folder.shell("gzip -c b.netset >c.netset.gz && zstd -q b.netset -o d.zst");
    configure("[\"http://localhost:8080/list.txt\", \"lists/\", \"*.netset\", \"c.netset.gz\", \"d.zst\", "
              "{ command = [\"echo\", \"192.0.2.4\"], user = \"nobody\" }]",
              "kind = \"xorsat\"\nverify = true");
    const auto report = apply();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->sets[0].last_good->entries, 6U);
    EXPECT_EQ(report->sets[0].last_good->keys, 4U);
    EXPECT_TRUE(report->sets[0].last_good->exact);
    EXPECT_EQ(report->sets[0].last_good->sources.size(), 6U);
}

// The joint filter is built by a confined child. If the child dies, the sets are asked one by one, and the
// next cycle joins them.
TEST_F(RealCycle, AChildJoinsTheSets) {
    folder.write("one.txt", "192.0.2.1\n192.0.2.2\n");
    folder.write("two.txt", "192.0.2.2\n192.0.2.3\n198.51.100.1\n");
    folder.write("except.txt", "198.51.100.0/24\n");
    folder.write("xdp-sieve.toml",
                 "[service]\nstate-directory = \"" + folder.path("state") +
                     "\"\n[[interface]]\nname = \"sieve0\"\nsets = [\"one\", \"two\"]\n" +
                     "join = true\n[set.one]\nkind = \"xorsat\"\nsources = \"one.txt\"\n" +
                     "[set.two]\nkind = \"xorsat\"\nsources = \"two.txt\"\nexcept = \"except.txt\"\n");
    std::mutex mutex;
    std::vector<pid_t> children;
    std::size_t killed = 5; // the children before it read and build the sets
    options.sandbox->started = [&](ChildRole role, pid_t pid) {
        const std::lock_guard lock(mutex);
        EXPECT_EQ(role, ChildRole::build);
        children.push_back(pid);
        if (children.size() == killed) ::kill(pid, SIGKILL);
    };
    std::vector<std::string> remarks;
    const auto joined = [&]() -> std::vector<std::optional<std::uint32_t>> {
        remarks.clear();
        children.clear();
        control::Observer observer;
        observer.remark = [&](const std::string& text) { remarks.push_back(text); };
        const auto report = apply(observer);
        EXPECT_TRUE(report) << report.error().message;
        control::RealKernel kernel;
        const auto hook = kernel.read_hook(kernel.find_interface("sieve0").value(), kernel::HookPoint::xdp);
        std::vector<std::optional<std::uint32_t>> numbers;
        for (const kernel::SetInForce& set : kernel.read_table(*hook).sets) numbers.push_back(set.joined);
        return numbers;
    };
    using Numbers = std::vector<std::optional<std::uint32_t>>;
    Numbers first = joined();
    // On a busy machine the child may have done its work before the signal reaches it.
    for (int again = 0; again < 20 && first == Numbers{0, 1}; again++) {
        control::RealKernel kernel;
        ASSERT_TRUE(control::unload(kernel, {.interface = "sieve0"}, {}));
        std::filesystem::remove_all(folder.path("state"));
        first = joined();
    }
    EXPECT_EQ(first, (Numbers{std::nullopt, std::nullopt})) << "both are in force";
    EXPECT_EQ(children.size(), 5U);
    ASSERT_FALSE(remarks.empty());
    EXPECT_SAYS(remarks.back(),
                "asked one by one, since joining them failed: building was ended by signal 9");
    killed = 0;
    EXPECT_EQ(joined(), (Numbers{0, 1}));
    EXPECT_EQ(children.size(), 1U) << "nothing else was to be done";
    ASSERT_FALSE(remarks.empty());
    EXPECT_SAYS(remarks.back(), "one lookup answers for one, two");
    EXPECT_EQ(joined(), (Numbers{0, 1}));
    EXPECT_EQ(children.size(), 0U);
    // The limits are the child's: there is too little memory for it, and not for this process.
    folder.write("one.txt", "192.0.2.7\n");
    killed = 0;
    options.sandbox->run = [](const ChildOrder& order) -> Result<ChildEnd> {
        ChildOrder with_less = order;
        auto message = read_order(order.message).value();
        if (std::holds_alternative<JoinOrder>(message.order)) message.confinement.memory_bytes = 1 << 20;
        with_less.message = write_order(message);
        return run_child(with_less);
    };
    EXPECT_EQ(joined(), (Numbers{std::nullopt, std::nullopt}));
    EXPECT_SAYS(remarks.back(), "since joining them failed: ");
}

TEST_F(RealCycle, AnImageIsPutInForceAsItIs) {
    configure(good_file());
    succeeds();
    const std::string identity = in_force();
    std::filesystem::copy(folder.path("state/sets/bad/" + identity + ".sieve"), folder.path("ready.sieve"));
    folder.write("good.txt", "192.0.2.7\n");
    succeeds();
    EXPECT_NE(in_force(), identity);
    configure("\"ready.sieve\"\nguards.unchecked-images = true");
    succeeds();
    EXPECT_EQ(in_force(), identity);
}

TEST_F(RealCycle, AListThatBecomesAPage) {
    nginx_->put("page.txt", "192.0.2.1\n");
    configure("\"http://localhost:8080/page.txt\"");
    succeeds();
    nginx_->put("page.txt", "<!DOCTYPE html><title>Sign in</title>\n");
    fails("set bad: http://localhost:8080/page.txt: found an HTML page, expected a list");
    nginx_->put("page.txt", "192.0.2.2\n");
    succeeds();
}

TEST_F(RealCycle, AnExpiredCertificate) {
    configure(good_file());
    succeeds();
    configure("{ url = \"https://localhost:8444/list.txt\", certificates = \"" + nginx_->authority() +
              "\" }");
    fails("set bad: https://localhost:8444/list.txt: SSL certificate problem: certificate has expired");
}

TEST_F(RealCycle, AServerThatSendsAByteNowAndThen) {
    configure(good_file());
    succeeds();
    const ScriptedServer server([&](int connection, const std::string&) {
        send_all(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        while (send_all(connection, "#")) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    configure("{ url = \"" + server.url() + "\", timeout = \"1s\" }");
    fails("timed out after");
}

TEST_F(RealCycle, ACommandThatFailsHangsOrTalksTooMuch) {
    configure(good_file());
    succeeds();
    configure("{ command = [\"sh\", \"-c\", \"echo 192.0.2.9; echo no key >&2; exit 3\"] }");
    fails("set bad: command sh: ended with status 3 (no key)");
    configure("{ command = [\"sleep\", \"1000\"], timeout = \"1s\" }");
    fails("set bad: command sleep: took longer than 1 s and was ended");
    configure("{ command = [\"yes\", \"192.0.2.9\"], most-bytes = 10000 }");
    fails("set bad: command yes: printed more than 10000 bytes, the limit, and was ended");
}

TEST_F(RealCycle, AChildThatCrashesHangsOrWantsTooMuch) {
    configure(good_file());
    succeeds();
    folder.write("good.txt", "192.0.2.3\n");
    options.sandbox->started = [](ChildRole, pid_t child) { ::kill(child, SIGSEGV); };
    fails("set bad: building was ended by signal 11 (SIGSEGV)");
    options.sandbox->started = [](ChildRole, pid_t child) { ::kill(child, SIGSTOP); };
    options.sandbox->limits.build = std::chrono::milliseconds(300);
    fails("set bad: building took longer than 0.3 s and was ended");
    options.sandbox = quick_settings();
    options.sandbox->limits.memory_bytes = std::uint64_t{24} << 20;
    std::string many;
    for (int i = 0; i < 1'500'000; i++)
        many += "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." +
                std::to_string(i & 255) + "\n";
    folder.write("good.txt", many);
    // An exact kind takes less memory.
    configure("\"good.txt\"", "kind = \"xorsat\"\nguards.most-growth = 1e9");
    fails("set bad: building needs more memory than its limit of 24 MiB");
    options.sandbox = quick_settings();
    folder.write("good.txt", "192.0.2.3\n");
    succeeds();
}

TEST_F(RealCycle, AFullDisk) {
    // Room for one small list.
    ASSERT_EQ(::mount("sieve-test", folder.path("state").c_str(), "tmpfs", 0, "size=128k,mode=0700"), 0);
    configure(good_file(), "guards.most-growth = 1e9");
    succeeds();
    std::string many;
    for (int i = 0; i < 50'000; i++)
        many += "10.0." + std::to_string(i >> 8) + "." + std::to_string(i & 255) + "\n";
    folder.write("good.txt", many);
    fails("No space left on device");
    folder.write("good.txt", "192.0.2.3\n");
    succeeds();
    EXPECT_EQ(::umount(folder.path("state").c_str()), 0);
}

TEST_F(RealCycle, AStateDirectoryOfAnotherVersion) {
    configure(good_file());
    succeeds();
    folder.write("state/version", "xdp-sieve state 99\n");
    folder.write("good.txt", "192.0.2.3\n");
    succeeds();
    EXPECT_TRUE(std::filesystem::exists(folder.path("state/set-aside.1/sets/bad/record.json")));
}

TEST_F(RealCycle, TwoWriters) {
    configure(good_file());
    succeeds();
    const auto other = StateDirectory::open(folder.path("state"), std::chrono::milliseconds(0), {});
    ASSERT_TRUE(other);
    folder.write("good.txt", "192.0.2.3\n");
    fails("process " + std::to_string(::getpid()) + " is at work with it");
}

} // namespace
} // namespace sieve::service
