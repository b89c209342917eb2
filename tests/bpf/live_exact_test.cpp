// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Exact sets that change under lookups. One processor looks members up in the kernel without a pause, by the
// packet path's own code, many times in each run. Another one inserts and deletes other keys in the same map,
// which moves members. No member is ever missed, and no stranger is ever found.
//
// SIEVE_EXACT_LOOKUPS sets the number of lookups of members in each test.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sieve/policy.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "bpf/own_network.hpp"
#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/table/apply.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/host/grace_period.hpp"
#include "libsieve/kernel/maps/mapped_filter.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::kernel {
namespace {

using namespace test;
using bench::BenchObject;
using bench::BenchSizes;

constexpr std::uint64_t first_stranger = 3'000'000'000; // an index of bench_address() that is never inserted

std::uint64_t lookups_wanted(std::uint64_t otherwise) {
    const char* text = std::getenv("SIEVE_EXACT_LOOKUPS");
    return text == nullptr ? bounded(otherwise) : std::strtoull(text, nullptr, 10);
}

Image exact_image(const KeySet& keys, std::uint64_t room) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    options.seed = 7;
    options.spare.room = room;
    return std::move(value_or_fail(build_set(keys, options, {})).image);
}

/// A map in force, open for changes as control opens it.
class LiveMap {
  public:
    explicit LiveMap(const Image& image)
        : map_(map_of(image, "live")), filter_(value_or_fail(MappedFilter::open(map_.id()))),
          table_(value_or_fail(kind_of(filter_.lookup())
                                   .exact()
                                   ->open_table(filter_.lookup(), filter_.file(), filter_.filter()))) {}

    [[nodiscard]] int fd() const { return map_.fd(); }
    [[nodiscard]] ChangeableTable& table() { return *table_; }
    [[nodiscard]] std::vector<sieve_line> lines() {
        return {filter_.filter().begin(), filter_.filter().end()};
    }
    [[nodiscard]] std::uint64_t waits() const { return waits_; }

    TableChangeResult change(const KeySet& removed, const KeySet& added) {
        return value_or_fail(table_->change(removed, added, [this] {
            waits_++;
            return grace_period();
        }));
    }
    /// The map would pass as an image: it has every key once, and counts them.
    void expect_intact() {
        const sieve_file& file = filter_.file();
        const auto sum = kind_of(filter_.lookup()).exact()->add_up(filter_.lookup(), filter_.filter());
        ASSERT_TRUE(sum) << sum.error().message;
        EXPECT_EQ(sum->keys, file.keys);
        EXPECT_EQ(sum->sum, (HashSum{.locate = file.key_sum[0], .test = file.key_sum[1]}));
    }

  private:
    FilterMap map_;
    MappedFilter filter_;
    std::unique_ptr<ChangeableTable> table_;
    std::uint64_t waits_ = 0;
};

/// What one side asks, over and over: members, and now and then strangers.
struct Questions {
    bpf_program* program = nullptr;
    std::uint64_t first = 0, members = 0; // a window, as in bench_control
    std::uint64_t first_stranger = 0, strangers = 0;
};

struct Answers {
    std::atomic<std::uint64_t> asked{0};
    std::uint64_t found = 0, strangers = 0, mistaken = 0;
};

void ask(const BenchObject& object, const Questions& questions, const std::atomic<bool>& stop,
         Answers& answers) {
    constexpr std::uint32_t runs = 100;
    const std::array<std::uint8_t, 64> frame{};
    bench_control& control = object.control();
    for (std::uint64_t turn = 0; !stop; turn++) {
        const bool members = turn % 8 != 0;
        control.first = members ? questions.first : questions.first_stranger;
        control.indices = members ? questions.members : questions.strangers;
        control.found = 0;
        const auto ran = bench::run_program(bpf_program__fd(questions.program), frame, runs);
        ASSERT_TRUE(ran) << ran.error().message;
        const std::uint64_t asked = std::uint64_t{runs} * control.lookups;
        (members ? answers.found : answers.mistaken) += control.found;
        if (members)
            answers.asked += asked;
        else
            answers.strangers += asked;
    }
}

/// Changes the map until so many members have been asked for, and prints what happened.
void while_asked(const char* name, const BenchObject& object, const Questions& questions,
                 std::uint64_t lookups, LiveMap& map, const std::function<std::uint64_t()>& change) {
    std::atomic<bool> stop{false};
    Answers answers;
    std::thread asking([&] { ask(object, questions, stop, answers); });
    std::uint64_t changes = 0, turns = 0;
    const auto start = std::chrono::steady_clock::now();
    while ((answers.asked < lookups || turns < 10) && !testing::Test::HasFailure()) {
        changes += change();
        turns++;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    stop = true;
    asking.join();
    EXPECT_EQ(answers.asked - answers.found, 0U) << "members missed, of " << answers.asked;
    EXPECT_EQ(answers.mistaken, 0U) << "strangers found, of " << answers.strangers;
    map.expect_intact();
    std::cout << fmt::format(
        "{}: {} lookups of members, {} missed; {} of strangers, {} found; {} changes ({:.0f} a "
        "second), {} grace periods, {:.1f} s\n",
        name, answers.asked.load(), answers.asked - answers.found, answers.strangers, answers.mistaken,
        changes, static_cast<double>(changes) / seconds, map.waits(), seconds);
}

/// Keys by their indices.
KeySet keys_at(std::uint64_t first, std::uint64_t count) {
    KeySet keys(SIEVE_FIELD_SRC);
    for (std::uint64_t i = 0; i < count; i++)
        keys.add_ipv4(bench_address(static_cast<std::uint32_t>(first + i)));
    return keys;
}

/// A large set at the load that its builder aims at. A thousand guests come and go at once.
TEST(LiveExact, MissesNoMemberWhileGuestsComeAndGo) {
    const std::uint64_t keys = bounded(200'000), batch = keys / 100, stay = keys - 20 * batch;
    LiveMap map(exact_image(keys_at(0, keys), 0));
    const BenchObject object = value_or_fail(BenchObject::load(BenchSizes::without_peers(1, -1)));
    ASSERT_TRUE(object.put_filter(0, map.fd()));
    std::uint64_t oldest = stay, next = keys;
    while_asked("guests", object,
                {.program = object.skeleton().progs.bench_filter,
                 .members = stay,
                 .first_stranger = first_stranger,
                 .strangers = 1'000'000'000},
                lookups_wanted(5'000'000), map, [&] {
                    const TableChangeResult did = map.change(keys_at(oldest, batch), keys_at(next, batch));
                    EXPECT_EQ(did.removed, batch);
                    EXPECT_TRUE(did.full.empty());
                    oldest += batch;
                    next += batch;
                    return did.removed + did.added;
                });
    EXPECT_GT(map.waits(), 0U) << "no key moved";
}

/// A table that is full but for a place or two: its members move to and fro with nearly every change.
void members_of_a_small_table_move(const char* name, bool ipv6) {
    constexpr std::uint64_t stay = 16;
    std::mt19937_64 random(11);
    const auto draw = [&] {
        sieve_key key{};
        key.word[0] = ipv6 ? random() | 1 : 0;
        key.word[1] = ipv6 ? random() : sieve_v4_mapped(static_cast<std::uint32_t>(random()));
        return key;
    };
    KeySet members(SIEVE_FIELD_SRC);
    for (std::uint64_t i = 0; i < stay; i++) members.add(draw());
    LiveMap map(exact_image(members, 8));
    // Guests until it is full.
    std::vector<sieve_key> guests;
    const KeySet none(SIEVE_FIELD_SRC);
    const auto one = [](const sieve_key& key) {
        KeySet keys(SIEVE_FIELD_SRC);
        keys.add(key);
        return keys;
    };
    for (int in_vain = 0; in_vain < 20;) {
        const sieve_key guest = draw();
        if (!map.change(none, one(guest)).full.empty())
            in_vain++;
        else
            guests.push_back(guest);
    }
    ASSERT_GT(guests.size(), 2U);

    constexpr std::uint32_t windows = 2;
    BenchSizes sizes = BenchSizes::without_peers(1, -1);
    sizes.questions = windows * stay;
    const BenchObject object = value_or_fail(BenchObject::load(sizes));
    ASSERT_TRUE(object.put_filter(0, map.fd()));
    const auto write = [&](std::uint64_t at, const sieve_key& key) {
        const auto index = static_cast<std::uint32_t>(at);
        const bench_question question{.upper = key.word[0], .lower = key.word[1]};
        ASSERT_EQ(bpf_map_update_elem(bpf_map__fd(object.skeleton().maps.bench_questions), &index, &question,
                                      BPF_ANY),
                  0);
    };
    for (std::uint64_t i = 0; i < stay; i++) {
        write(i, members.at(i));
        write(stay + i, draw());
    }
    auto movements = [&, before = map.lines()]() mutable {
        std::vector<sieve_line> now = map.lines();
        std::uint64_t words = 0;
        for (std::size_t line = 1; line < now.size(); line++)
            for (std::size_t word = 0; word < SIEVE_LINE_WORDS; word++)
                words += now[line].word[word] != before[line].word[word] ? 1 : 0;
        before = std::move(now);
        return words;
    };
    std::uint64_t moved = 0;
    while_asked(name, object,
                {.program = object.skeleton().progs.bench_ask_filter,
                 .members = stay,
                 .first_stranger = stay,
                 .strangers = stay},
                lookups_wanted(5'000'000), map, [&] {
                    // Two go, and as many come as find room, of a few that try.
                    KeySet out(SIEVE_FIELD_SRC), in(SIEVE_FIELD_SRC);
                    for (int i = 0; i < 2; i++) {
                        const std::size_t at = random() % guests.size();
                        out.add(guests[at]);
                        guests[at] = guests.back();
                        guests.pop_back();
                    }
                    std::vector<sieve_key> coming;
                    for (int i = 0; i < 4; i++) coming.push_back(draw());
                    for (const sieve_key& key : coming) in.add(key);
                    const TableChangeResult did = map.change(out, in);
                    for (const sieve_key& key : coming)
                        if (map.table().contains(key)) guests.push_back(key);
                    const std::uint64_t words = movements();
                    const std::uint64_t keys = did.removed + did.added;
                    moved += words > keys ? words - keys : 0; // words that changed without a key of their own
                    return keys;
                });
    EXPECT_GT(map.waits(), 10U) << "no key moved";
    std::cout << fmt::format("{}: at least {} moves among {} members and {} guests\n", name, moved, stay,
                             guests.size());
}

TEST(LiveExact, MissesNoMemberThatMovesToAndFro) {
    members_of_a_small_table_move("to and fro", false);
}

TEST(LiveExact, MissesNoIpv6MemberThatMovesToAndFro) {
    members_of_a_small_table_move("to and fro, IPv6", true);
}

/// Growth as `insert` does it: listed, built larger, tested, swapped. Meanwhile the program in force is asked
/// for members, packet by packet.
TEST(LiveExact, GrowsWithoutAMissedMember) {
    in_own_network([] {
        const std::uint64_t keys = bounded(1'000'000), more = keys / 100 + 8;
        ASSERT_TRUE(ip("link set lo up"));
        const std::string path = fmt::format("/tmp/sieve-growth-{}.sieve", ::getpid());
        Image image = exact_image(keys_at(0, keys), 0);
        ASSERT_TRUE(image.save(path, Replace::anything));
        control::RealKernel kernel;
        control::SetSpec set;
        set.name = "set";
        set.sources = {path};
        control::TableSpec spec;
        spec.interface = "lo";
        spec.sets = {set};
        spec.mode = ModeChoice::skb;
        double best = 1e9;
        for (int round = 0; round < 3; round++) {
            const auto applied = control::apply(kernel, spec, {});
            ASSERT_TRUE(applied) << applied.error().message;
            // Behind a dispatcher, only the dispatcher can be run.
            const UniqueFd program(bpf_prog_get_fd_by_id(applied->hook.attached->id));
            ASSERT_TRUE(program);
            std::atomic<bool> stop{false}, refused{false};
            std::atomic<std::uint64_t> asked{0}, missed{0};
            std::thread asking([&] {
                packets::Carrier carrier;
                std::mt19937_64 random(13);
                while (!stop) {
                    sieve_key key{};
                    key.word[1] = sieve_v4_mapped(bench_address(static_cast<std::uint32_t>(random() % keys)));
                    const auto frame = carrier.carry(key, SIEVE_FIELD_SRC);
                    LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame.data(),
                                .data_size_in = static_cast<__u32>(frame.size()));
                    if (bpf_prog_test_run_opts(program.get(), &run) != 0 && errno != EINTR) {
                        refused = true;
                        return;
                    }
                    missed += run.retval == XDP_DROP ? 0 : 1;
                    asked++;
                }
            });
            const auto wait_until_asked = [&](std::uint64_t times) {
                while (asked < times && !refused) std::this_thread::yield();
            };
            wait_until_asked(100);
            const auto start = std::chrono::steady_clock::now();
            const auto did = control::change_keys(kernel, {.interface = "lo"}, "set", keys_at(keys, more),
                                                  control::KeyRequest{}, {});
            const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            const std::uint64_t meanwhile = asked;
            wait_until_asked(meanwhile + 1'000);
            stop = true;
            asking.join();
            ASSERT_FALSE(refused) << "the program in force cannot be run";
            ASSERT_TRUE(did) << did.error().message;
            EXPECT_EQ(did->grown, 1U);
            EXPECT_EQ(did->report.done, more);
            EXPECT_EQ(did->report.keys, keys + more);
            EXPECT_EQ(missed, 0U) << "of " << asked;
            EXPECT_GT(meanwhile, 100U);
            best = std::min(best, seconds);
        }
        std::cout << fmt::format("a set of {} keys grew in {:.0f} ms, the best of three\n", keys, best * 1e3);
        std::remove(path.c_str());
    });
}

/// Flows: the real program is asked for members, again and again, while others come and go in the same rows.
TEST(LiveExact, MissesNoFlowWhileOthersComeAndGo) {
    constexpr std::size_t stay = 300, batch = 40, guests = 400;
    std::mt19937_64 random(12);
    KeySet flows(SIEVE_FIELD_ALL);
    for (std::size_t i = 0; i < stay + guests; i++) {
        sieve_key key{};
        for (const int at : {1, 3}) key.word[at] = sieve_v4_mapped(static_cast<std::uint32_t>(random()));
        key.word[4] = sieve_transport_word(static_cast<std::uint16_t>(random()), 443, 6);
        flows.add(key);
    }
    const auto part = [&](std::size_t first, std::size_t count) {
        KeySet keys(SIEVE_FIELD_ALL);
        for (std::size_t i = 0; i < count; i++) keys.add(flows.at(first + i));
        return keys;
    };
    LiveMap map(exact_image(part(0, stay + guests / 2), 100));
    const Scratch scratch = value_or_fail(Scratch::load(false));
    ASSERT_TRUE(scratch.ask_only(map.fd()));
    std::vector<std::vector<std::uint8_t>> packets;
    packets::Carrier carrier;
    for (std::size_t i = 0; i < flows.size(); i++) {
        const auto carried = carrier.carry(flows.at(i), SIEVE_FIELD_ALL);
        packets.emplace_back(carried.begin(), carried.end());
    }
    const auto drops = [&](std::size_t i) { return value_or_fail(scratch.run(packets[i])) == XDP_DROP; };
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> asked{0}, missed{0};
    // Another instance, whose counter says how many of many runs found the member.
    const Scratch other = value_or_fail(Scratch::load(false));
    ASSERT_TRUE(other.ask_only(map.fd()));
    std::thread asking([&] {
        constexpr std::uint32_t runs = 5'000;
        const auto hits = [&] { return value_or_fail(read_stats(other.instance())).hit[0].packets; };
        for (std::size_t i = 0; !stop; i = (i + 1) % stay) {
            const std::uint64_t before = hits();
            ASSERT_TRUE(bench::run_program(other.object().program_fd(), packets[i], runs));
            missed += runs - (hits() - before);
            asked += runs;
        }
    });
    std::uint64_t changes = 0;
    const std::uint64_t lookups = lookups_wanted(5'000'000);
    // Windows of guests: those of the oldest batch go, the next ones come.
    for (std::size_t oldest = 0; asked < lookups || changes < 1'000; oldest = (oldest + batch) % guests) {
        const TableChangeResult did =
            map.change(part(stay + oldest, batch), part(stay + (oldest + guests / 2) % guests, batch));
        ASSERT_EQ(did.removed, batch);
        ASSERT_TRUE(did.full.empty());
        changes += did.removed + did.added;
        if (changes % 1'600 != 0) continue;
        // Which guests are in is known, too.
        for (std::size_t i = 0; i < guests; i++) {
            const std::size_t behind = (i + guests - (oldest + batch) % guests) % guests;
            ASSERT_EQ(drops(stay + i), behind < guests / 2) << i;
        }
    }
    stop = true;
    asking.join();
    EXPECT_EQ(missed, 0U) << "of " << asked;
    map.expect_intact();
    std::cout << fmt::format("flows: {} lookups of members, {} missed; {} changes, {} grace periods\n",
                             asked.load(), missed.load(), changes, map.waits());
}

} // namespace
} // namespace sieve::kernel
