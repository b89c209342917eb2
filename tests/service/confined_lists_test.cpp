// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists that a child reads: it finds what this process would find, and can do no harm.
#include "libsieve/service/sandbox/confined_lists.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "libsieve/service/sandbox/child_messages.hpp"
#include "service/support.hpp"

namespace sieve::service {
namespace {

using namespace test;

constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;

std::vector<Input> inputs_of(const std::vector<std::string>& paths) {
    auto inputs = Input::of_all(paths);
    if (!inputs) throw std::runtime_error(inputs.error().message);
    return std::move(*inputs);
}

// All that is known of a list.
std::string described(const Result<FoundList>& found) {
    if (!found) return std::to_string(static_cast<int>(found.error().kind)) + found.error().message;
    const Feed& feed = found->feed;
    std::string text;
    for (std::size_t i = 0; i < feed.keys.size(); i++) {
        const sieve_key key = feed.keys.at(i);
        text.append(reinterpret_cast<const char*>(&key), sizeof(key));
    }
    for (const AddressRange& range : feed.ranges)
        text.append(reinterpret_cast<const char*>(&range), sizeof(range));
    for (const KeyRange& range : feed.key_ranges) text += std::to_string(range.transport) + " ";
    for (const std::uint64_t number : {feed.lines, feed.comments, feed.skipped, feed.masked, feed.bytes,
                                       feed.overflowed, static_cast<std::uint64_t>(feed.entries())})
        text += std::to_string(number) + " ";
    for (const auto* texts : {&feed.skipped_first, &feed.decided, &found->places})
        for (const std::string& one : *texts) text += one + "\n";
    return text;
}

struct Case {
    std::string content;
    std::uint32_t fields = SIEVE_FIELD_SRC;
    FeedOptions options{.ranges = true, .key_ranges = true};
};

TEST(ConfinedLists, HoldWhatThisProcessWouldFind) {
    const Folder folder;
    std::string many = "# many\n";
    for (int i = 0; i < 300'000; i++)
        many += std::to_string(i % 223 + 1) + "." + std::to_string(i / 65536) + "." +
                std::to_string(i / 256 % 256) + "." + std::to_string(i % 256) + "\n";
    FeedOptions automatic{.format = {}, .ranges = true, .key_ranges = true};
    FeedOptions skipping{.skip_invalid = true, .ranges = true};
    FeedOptions keeping = skipping;
    keeping.keep_skipped = true;
    std::string bad;
    for (int i = 0; i < 9; i++)
        bad += "192.0.2." + std::to_string(i) + "\nnonsense \x1b" + std::to_string(i) + "\n";
    const std::vector<Case> cases{
        {many},
        {"192.0.2.1\n2001:db8::1\n192.0.2.0/24\n192.0.2.3\n"},
        {"192.0.2.1 443 tcp\n* 53 udp\n", flow},
        {"ip,score\n192.0.2.1,5\n", SIEVE_FIELD_SRC, automatic},
        {R"({"prefixes": [{"ip_prefix": "192.0.2.0/24"}]})", SIEVE_FIELD_SRC, automatic},
        {"create x hash:ip family inet\nadd x 192.0.2.7\n", SIEVE_FIELD_SRC, automatic},
        {bad},
        {bad, SIEVE_FIELD_SRC, skipping},
        {bad, SIEVE_FIELD_SRC, keeping},
        {"# nothing\n"},
        {""},
        {"BZhpacked"},
        {"192.0.2.1/24\n", SIEVE_FIELD_SRC, {.ranges = true, .mask_host_bits = true}},
    };
    for (const Case& one : cases) {
        const std::string path = folder.write("list", one.content);
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(0xc0000201); // 192.0.2.1
        const std::vector<sieve_key> keys{key, sieve_key{}};
        for (const bool seeking : {false, true}) {
            const ListQuestion question{.fields = one.fields,
                                        .options = one.options,
                                        .sought = seeking ? std::span(keys) : std::span<const sieve_key>()};
            std::vector<Input> here = inputs_of({path});
            std::vector<Input> there = inputs_of({path});
            EXPECT_TRUE(described(read_here(here, question)) == described(read_confined(there, question)))
                << one.content.substr(0, 60) << " "
                << described(read_confined(there, question)).substr(0, 300);
        }
    }
}

TEST(ConfinedLists, ManyInputsOfEverySort) {
    const Folder folder;
    std::vector<std::string> paths;
    for (int i = 0; i < 300; i++)
        paths.push_back(
            folder.write("list" + std::to_string(i), "192.0.2." + std::to_string(i % 250) + "\n"));
    folder.shell("gzip list7; mkfifo pipe");
    paths[7] = folder.path("list7.gz");
    paths[200] = folder.path("pipe");
    const auto feed_pipe = [&] {
        return std::thread([&] { std::ofstream(folder.path("pipe")) << "198.51.100.1\n198.51.100.2\n"; });
    };
    const FeedOptions options;
    const sieve_key key{{0, sieve_v4_mapped(0xc0000200 + 249)}};
    const ListQuestion question{.fields = SIEVE_FIELD_SRC, .options = options, .sought = {&key, 1}};
    std::string texts[2];
    for (const bool confined : {false, true}) {
        std::vector<Input> inputs = inputs_of(paths);
        ASSERT_TRUE(inputs[3].peek(4)); // a caller has looked into it
        std::thread writer = feed_pipe();
        texts[confined ? 1 : 0] =
            described(confined ? read_confined(inputs, question) : read_here(inputs, question));
        writer.join();
    }
    EXPECT_TRUE(texts[0] == texts[1]) << texts[1];
    // An error is that of the first faulty line, in whichever child.
    folder.write("list250", "x\n");
    folder.write("list290", "y\n");
    std::vector<Input> inputs = inputs_of(paths);
    std::thread writer = feed_pipe();
    const auto found = read_confined(inputs, {.fields = SIEVE_FIELD_SRC, .options = options});
    writer.join();
    ASSERT_FALSE(found);
    EXPECT_TRUE(found.error().message.starts_with(paths[250] + ":1: ")) << found.error().message;
}

TEST(ConfinedLists, PassOnWhatIsTooMuchForMemory) {
    const Folder folder;
    std::string many;
    for (int i = 0; i < 300'000; i++) many += "10.0.0." + std::to_string(i % 250) + "\n";
    std::uint64_t taken = 0;
    FeedOptions options;
    options.most_entries = 100'000;
    options.overflow = [&](Feed& feed) -> Status {
        taken += feed.keys.size();
        return {};
    };
    std::vector<Input> inputs = inputs_of({folder.write("list", many)});
    const auto found = read_confined(inputs, {.fields = SIEVE_FIELD_SRC, .options = options});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_GE(taken, 200'000U);
    EXPECT_EQ(found->feed.overflowed, taken);
    EXPECT_EQ(taken + found->feed.keys.size(), 300'000U);
    options.overflow = [](Feed&) -> Status { return bad_input("the disk is full"); };
    std::vector<Input> again = inputs_of({folder.path("list")});
    const auto refused = read_confined(again, {.fields = SIEVE_FIELD_SRC, .options = options});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "the disk is full");
}

// A child that waits for the rest of its list, which comes through a FIFO.
class WaitingChild : public testing::Test {
  protected:
    WaitingChild() { folder_.shell("mkfifo list"); }

    [[nodiscard]] bool waits() const {
        std::string call;
        std::ifstream("/proc/" + std::to_string(child_) + "/syscall") >> call;
        return child_ != 0 && status_of(child_, "Seccomp") == "2" &&
               (call == std::to_string(SYS_read) || call == std::to_string(SYS_futex));
    }
    // Acts on the child while it waits; what comes of reading.
    Result<FoundList> read(const std::function<void(pid_t)>& act) {
        std::thread other([&] {
            std::ofstream writer(folder_.path("list"));
            writer << "192.0.2.1\n" << std::flush;
            if (await([&] { return waits(); })) act(child_);
            writer << "192.0.2.2\n";
        });
        std::vector<Input> inputs = inputs_of({folder_.path("list")});
        const FeedOptions options;
        const SandboxSettings child{.started = [this](ChildRole, pid_t pid) { child_ = pid; }};
        auto found = read_confined(inputs, {.fields = SIEVE_FIELD_SRC, .options = options}, child);
        other.join();
        return found;
    }

    Folder folder_;
    std::atomic<pid_t> child_ = 0;
};

TEST_F(WaitingChild, HasNoRights) {
    std::string sets;
    std::string rest;
    const auto found = read([&](pid_t pid) {
        for (const char* name : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
            sets += status_of(pid, name);
        rest = status_of(pid, "NoNewPrivs") + " " + status_of(pid, "Uid") + " " + status_of(pid, "Groups");
    });
    EXPECT_EQ(sets, std::string(5 * 16, '0'));
    EXPECT_EQ(rest, "1 65534\t65534\t65534\t65534 ");
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->feed.keys.size(), 2U);
}

TEST_F(WaitingChild, CrashesAlone) {
    const auto found = read([](pid_t pid) { ::kill(pid, SIGSEGV); });
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().kind, ErrorKind::bad_input);
    EXPECT_EQ(found.error().message,
              folder_.path("list") + ": the process that reads it was ended by signal 11 (SIGSEGV)");
}

// What a child that was taken over might say: nothing of it is believed.
TEST(ConfinedLists, NonsenseIsRefused) {
    const Folder folder;
    const std::string path = folder.write("list", "192.0.2.1\n");
    const auto answer_to = [&](const std::string& printed, const ListDone& done) {
        SandboxSettings child;
        child.run = [&](const ChildOrder& order) -> Result<ChildEnd> {
            ChildEnd end;
            if (order.output(printed) == 0) end.report = write_report(done);
            return end;
        };
        std::vector<Input> inputs = inputs_of({path});
        const FeedOptions options;
        const auto found = read_confined(inputs, {.fields = SIEVE_FIELD_SRC, .options = options}, child);
        return found ? std::to_string(found->feed.keys.size()) : found.error().message;
    };
    const std::string nonsense = path + ": the process that reads it reported nonsense";
    const std::string one_address("\1\0\0\0\4\0\0\0abcd", 12);
    EXPECT_EQ(answer_to(one_address, {.lines = 1}), "1");
    EXPECT_EQ(answer_to(one_address, {.lines = 2}), nonsense); // what was the other line?
    EXPECT_EQ(answer_to(one_address.substr(0, 11), {.lines = 0, .comments = 0}), nonsense);
    EXPECT_EQ(answer_to("abcdefghijkl", {}), nonsense);
    EXPECT_EQ(answer_to(one_address, {.lines = 2, .skipped = 1}), nonsense); // and which?
}

} // namespace
} // namespace sieve::service
