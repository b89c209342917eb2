// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Hit marks of exact sets in the kernel: exactly those keys are marked that packets asked for, on whichever
// processor, and while other keys come, go and move.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/host/grace_period.hpp"
#include "libsieve/kernel/maps/mapped_filter.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/packets/carrier.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::kernel {
namespace {

using test::bounded;
using test::value_or_fail;
using Addresses = std::set<uint128>;

sieve_key key_of(uint128 address) {
    return {{static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address), 0, 0, 0}};
}

template <class Range>
KeySet set_of(const Range& addresses) {
    KeySet keys(SIEVE_FIELD_SRC);
    for (const uint128 address : addresses) keys.add(key_of(address));
    return keys;
}

uint128 random_ipv4(std::mt19937_64& random) {
    return sieve_v4_mapped(static_cast<std::uint32_t>(0x01000000 + random() % 0xd0000000));
}

/// Of those beginnings that a table with marks takes, both with the highest bit set and without.
uint128 random_ipv6(std::mt19937_64& random) {
    constexpr std::uint64_t first[] = {0x2001, 0x3fff, 0x0064, 0x5f00, 0xfc00, 0xfe80, 0xe000};
    const std::uint64_t upper = first[random() % std::size(first)] << 48 | random() >> 16;
    return address_number(upper, random());
}

Image image_with_marks(const KeySet& keys, std::uint64_t room) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    options.seed = 7;
    options.spare = {.room = room, .lifetimes = {}, .hits = true};
    return std::move(value_or_fail(build_set(keys, options, {})).image);
}

/// A set with marks in the kernel, open for changes as control opens it.
class MarkedMap {
  public:
    explicit MarkedMap(const KeySet& keys, std::uint64_t room = 0)
        : map_(test::map_of(image_with_marks(keys, room), "marks")),
          filter_(value_or_fail(MappedFilter::open(map_.id()))),
          table_(value_or_fail(kind().open_table(filter_.lookup(), filter_.file(), filter_.filter()))) {}

    [[nodiscard]] int fd() const { return map_.fd(); }
    [[nodiscard]] ChangeableTable& table() { return *table_; }
    TableChangeResult change(const KeySet& removed, const KeySet& added) {
        return value_or_fail(table_->change(removed, added, [this] {
            waits_++;
            return grace_period();
        }));
    }
    [[nodiscard]] std::uint64_t waits() const { return waits_; }

    [[nodiscard]] Addresses marked() {
        Addresses marked;
        const Status read = kind().for_each_entry(
            filter_.lookup(), filter_.filter(), 0, [&](const sieve_key& key, std::uint64_t, bool hit) {
                if (hit) marked.insert(address_number(key.word[0], key.word[1]));
            });
        EXPECT_TRUE(read) << read.error().message;
        return marked;
    }
    /// Takes all marks of IPv4 addresses away.
    void clear() {
        const sieve_exact& exact = *sieve_exact_of(&filter_.lookup());
        const std::uint64_t marks = exact::Lanes(exact).marks();
        for (std::uint32_t word = 0; word < exact.words; word++)
            std::atomic_ref(filter_.filter()[sieve_exact_line(word)].word[sieve_exact_index(word)])
                .fetch_and(~marks);
    }
    /// The map would pass as an image: it has every key once, and counts them.
    void expect_intact() {
        const auto sum = kind().add_up(filter_.lookup(), filter_.filter());
        ASSERT_TRUE(sum) << sum.error().message;
        EXPECT_EQ(sum->keys, filter_.file().keys);
    }

  private:
    [[nodiscard]] const ExactKind& kind() { return *kind_of(filter_.lookup()).exact(); }

    FilterMap map_;
    MappedFilter filter_;
    std::unique_ptr<ChangeableTable> table_;
    std::uint64_t waits_ = 0;
};

/// A program in service that has one set at a time, and packets for it. The kernel verifies it once.
class Service {
  public:
    explicit Service(HookPoint point = HookPoint::xdp)
        : scratch_(value_or_fail(Scratch::load(false, point))) {}

    /// From now on it has this set, and packets ask.
    void put(const MarkedMap& map) {
        const Status done = scratch_.table().replace({.sets = {{.name = "marks", .map_fd = map.fd()}}});
        ASSERT_TRUE(done) << done.error().message;
        serve(true);
    }
    /// Else it is a controller that asks.
    void serve(bool packets) { scratch_.instance().control().trial = packets ? 0 : 1; }
    [[nodiscard]] bool matches(uint128 address) {
        return value_or_fail(scratch_.run(carrier_.carry(key_of(address), SIEVE_FIELD_SRC))) ==
               SIEVE_VERDICT_DROP;
    }

  private:
    Scratch scratch_;
    packets::Carrier carrier_;
};

class HitMarks : public testing::TestWithParam<HookPoint> {};

TEST_P(HitMarks, AreThoseOfTheKeysThatPacketsHad) {
    std::mt19937_64 random(1);
    Service service(GetParam());
    for (const std::size_t keys : {1, 3, 40, 5'000, 100'000, 300'000}) {
        Addresses members, asked;
        const std::size_t count = bounded(keys);
        while (members.size() < count) members.insert(random_ipv4(random));
        while (members.size() < count + (count + 3) / 4) members.insert(random_ipv6(random));
        MarkedMap map(set_of(members));
        service.put(map);
        ASSERT_TRUE(map.marked().empty());

        const std::size_t one_in = 1 + members.size() / 3'000;
        service.serve(false);
        for (const uint128 one : members)
            if (random() % one_in == 0) {
                ASSERT_TRUE(service.matches(one));
            }
        ASSERT_TRUE(map.marked().empty()) << "a question of a controller is no hit";

        service.serve(true);
        for (const uint128 one : members)
            if (random() % (2 * one_in) == 0) {
                asked.insert(one);
                ASSERT_TRUE(service.matches(one));
                if (random() % 2 == 0) {
                    ASSERT_TRUE(service.matches(one)) << "with its mark";
                }
                // Neighbours, also those that differ from a marked address in its mark only.
                for (const uint128 bit : {uint128{1}, uint128{1} << 127, uint128{1} << 126}) {
                    const uint128 other = one ^ bit;
                    if (!is_ipv4(other) || bit == 1) {
                        ASSERT_EQ(service.matches(other), members.contains(other));
                        if (members.contains(other)) asked.insert(other);
                    }
                }
            }
        EXPECT_TRUE(map.marked() == asked) << map.marked().size() << " marks, " << asked.size() << " asked";
        map.expect_intact();
    }
}

INSTANTIATE_TEST_SUITE_P(Hooks, HitMarks, testing::Values(HookPoint::xdp, HookPoint::ingress),
                         [](const auto& info) { return std::string(hook_point_name(info.param)); });

/// The same by the packet path's own code without a packet, so close together that two processors mark keys
/// of one word at the same moment.
TEST(HitMark, OfLookupsAtTheSameMomentAreAllSet) {
    constexpr std::uint32_t own = 8;
    constexpr std::size_t threads = 2;
    KeySet keys(SIEVE_FIELD_SRC);
    Addresses members;
    for (std::uint32_t i = 0; i < own * threads; i++) {
        keys.add_ipv4(bench_address(i));
        members.insert(sieve_v4_mapped(bench_address(i)));
    }
    MarkedMap map(keys);
    std::vector<bench::BenchObject> objects;
    for (std::uint32_t thread = 0; thread < threads; thread++) {
        bench::BenchSizes sizes = bench::BenchSizes::without_peers(1, -1);
        sizes.questions = own;
        objects.push_back(value_or_fail(bench::BenchObject::load(sizes)));
        ASSERT_TRUE(objects.back().put_filter(0, map.fd()));
        for (std::uint32_t i = 0; i < own; i++) {
            const bench_question question{.upper = 0,
                                          .lower = sieve_v4_mapped(bench_address(i * threads + thread))};
            ASSERT_EQ(bpf_map_update_elem(bpf_map__fd(objects.back().skeleton().maps.bench_questions), &i,
                                          &question, BPF_ANY),
                      0);
        }
        objects.back().control().first = 0;
        objects.back().control().indices = own;
        objects.back().control().lookups = own;
    }
    const std::size_t rounds = bounded(20'000);
    std::atomic<std::size_t> begun{0}, done{0};
    std::atomic<bool> failed{false};
    const auto ask = [&](const bench::BenchObject& object) {
        const std::array<std::uint8_t, 64> frame{};
        if (!bench::run_program(bpf_program__fd(object.skeleton().progs.bench_ask_filter), frame, 1))
            failed = true;
    };
    const auto await = [&](const std::atomic<std::size_t>& count, std::size_t wanted) {
        for (int spins = 0; count < wanted && !failed; spins++)
            if (spins % 1'000 == 999) std::this_thread::yield();
    };
    const auto stay_on = [](std::thread& thread, unsigned processor) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        pthread_setaffinity_np(thread.native_handle(), sizeof(one), &one);
    };
    std::size_t incomplete = 0;
    std::thread first([&] {
        for (std::size_t round = 1; round <= rounds && !failed; round++) {
            map.clear();
            begun++;
            ask(objects[0]);
            await(done, round);
            incomplete += map.marked() == members ? 0 : 1;
        }
    });
    std::thread other([&] {
        for (std::size_t round = 1; round <= rounds && !failed; round++) {
            await(begun, round);
            ask(objects[1]);
            done++;
        }
    });
    stay_on(first, 0);
    stay_on(other, std::thread::hardware_concurrency() - 1);
    first.join();
    other.join();
    ASSERT_FALSE(failed);
    EXPECT_EQ(incomplete, 0U) << "of " << rounds;
}

/// A table that is nearly full, so that keys move with every change. Half of its members are asked for once,
/// the others never. Guests are asked for, go and come back, or are never asked for.
void stay_while_keys_move(bool ipv6) {
    constexpr std::size_t stay = 16;
    std::mt19937_64 random(3);
    const auto draw = [&] { return ipv6 ? random_ipv6(random) : random_ipv4(random); };
    std::uint64_t waits = 0;
    const KeySet none(SIEVE_FIELD_SRC);
    Service service;
    for (std::size_t round = 0; round < bounded(30); round++) {
        Addresses members;
        while (members.size() < stay) members.insert(draw());
        MarkedMap map(set_of(members), 8);
        std::vector<uint128> guests;
        for (int in_vain = 0; in_vain < 8;) {
            const uint128 guest = draw();
            if (map.change(none, set_of(Addresses{guest})).full.empty())
                guests.push_back(guest);
            else
                in_vain++;
        }
        ASSERT_GT(guests.size(), 2U);
        service.put(map);
        Addresses asked;
        std::vector<uint128> order(members.begin(), members.end());
        std::shuffle(order.begin(), order.end(), random);
        order.resize(stay / 2);
        asked.insert(order.begin(), order.end());
        const uint128 known = guests.back();
        guests.pop_back();
        ASSERT_TRUE(service.matches(known));
        ASSERT_TRUE(map.marked() == Addresses{known});

        std::atomic<bool> over{false};
        std::atomic<std::size_t> missed{0};
        std::thread asking([&] {
            for (const uint128 one : order) {
                missed += service.matches(one) ? 0 : 1;
                std::this_thread::yield();
            }
            over = true;
        });
        for (int change = 0; change < 3 || !over; change++) {
            Addresses out;
            if (change == 0) out.insert(known);
            if (!guests.empty()) {
                out.insert(guests.back());
                guests.pop_back();
            }
            Addresses in;
            for (int i = 0; i < 4; i++) in.insert(draw());
            const TableChangeResult did = map.change(set_of(out), set_of(in));
            ASSERT_EQ(did.removed, out.size());
            for (const uint128 one : in)
                if (map.table().contains(key_of(one))) guests.push_back(one);
        }
        asking.join();
        EXPECT_EQ(missed, 0U);
        EXPECT_TRUE(map.marked() == asked) << map.marked().size() << " marks, " << asked.size() << " asked";
        // What was marked, went and comes back, has no mark.
        while (!guests.empty() && !map.change(none, set_of(Addresses{known})).full.empty()) {
            ASSERT_EQ(map.change(set_of(Addresses{guests.back()}), none).removed, 1U);
            guests.pop_back();
        }
        EXPECT_TRUE(map.table().contains(key_of(known)) && map.marked() == asked);
        map.expect_intact();
        waits += map.waits();
        if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(waits, 0U) << "no key moved";
}

TEST(HitMark, StaysWhileIpv4KeysMove) {
    stay_while_keys_move(false);
}

TEST(HitMark, StaysWhileIpv6KeysMove) {
    stay_while_keys_move(true);
}

} // namespace
} // namespace sieve::kernel
