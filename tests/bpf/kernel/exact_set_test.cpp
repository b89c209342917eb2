// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Verification: behind the worst filters there is no false positive and no missed member, and the number of
// avoided false positives agrees with the filter's rate.
#include "libsieve/kernel/maps/exact_set.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <linux/bpf.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "bpf/scarce.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/preflight.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

constexpr double bad_bits = 4; // a non-member in seven matches

// A set as a list, as the worst possible filter, and as an exact set.
struct Verified {
    KeySet keys;
    std::vector<AddressRange> ranges;
    Image image;
    FilterMap map;
    ExactSet exact;
};

Verified verified(KeySet keys, std::vector<AddressRange> ranges = {}, double bits = bad_bits,
                  std::uint64_t room = 0) {
    BuildOptions options;
    options.bits_per_key = bits;
    options.seed = 7;
    options.threads = 1;
    options.trials = 20'000;
    options.prefixes.max_probes = 2;
    Image image = value_or_fail(build_set(keys, ranges, options, [](std::string_view, double) {})).image;
    const auto exact = value_or_fail(exact_keys(Members(keys, ranges), image, "list"));
    FilterMap map = map_of(image);
    ExactSet set = value_or_fail(ExactSet::create(image, exact, "test", room));
    return {std::move(keys), std::move(ranges), std::move(image), std::move(map), std::move(set)};
}

std::uint32_t random_address(std::mt19937_64& random) {
    return static_cast<std::uint32_t>(random() % (std::uint64_t{224} << 24));
}

std::string text_of(std::uint32_t address) {
    return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

class Verification : public ::testing::Test {
  protected:
    void put(const Verified& set) {
        ASSERT_TRUE(scratch_.table().replace({SIEVE_ACTION_PASS,
                                              {{.name = "set",
                                                .action = SIEVE_ACTION_DROP,
                                                .map_fd = set.map.fd(),
                                                .target = 0,
                                                .exact_fd = set.exact.fd()}}}));
    }
    [[nodiscard]] bool drops(const Packet& packet) const {
        return value_or_fail(scratch_.run(packet.bytes())) == XDP_DROP;
    }
    [[nodiscard]] sieve_verified counted() const {
        const TableInForce table = scratch_.table().read();
        const SetInForce& set = *table.find("set");
        return difference(value_or_fail(read_stats(scratch_.instance())).verified[set.slot],
                          set.verified_baseline);
    }
    // The number of avoided false positives agrees with the filter's rate, within five sigma.
    static void expect_rate(const sieve_verified& counted, double rate) {
        const auto n = static_cast<double>(counted.non_members);
        EXPECT_NEAR(static_cast<double>(counted.avoided), n * rate, 5 * std::sqrt(n * rate * (1 - rate)))
            << "of " << n;
        EXPECT_GT(counted.avoided, 100U) << "the filter is too good for this test";
    }

    const Scratch& scratch_ = shared_program();
};

Packet from(std::uint32_t source) {
    return Ethernet{} / IPv4{.src = text_of(source)} / Udp{} / Payload{.bytes = 18};
}

TEST_F(Verification, OfAddresses) {
    std::mt19937_64 random(11);
    KeySet keys(SIEVE_FIELD_SRC);
    std::set<std::uint32_t> members;
    while (members.size() < 3000) members.insert(random_address(random));
    for (const std::uint32_t address : members) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(address);
        keys.add(key);
    }
    const Verified set = verified(std::move(keys));
    put(set);
    for (const std::uint32_t address : members) ASSERT_TRUE(drops(from(address)));
    EXPECT_EQ(counted().non_members, 0U);
    constexpr std::uint64_t non_members = 6000;
    for (std::uint64_t i = 0; i < non_members;) {
        const std::uint32_t address = random_address(random);
        if (members.contains(address)) continue;
        ASSERT_FALSE(drops(from(address))) << text_of(address);
        i++;
    }
    EXPECT_EQ(counted().non_members, non_members);
    expect_rate(counted(), rate_from_bits(set.image.file().expected_fpr));
    // Hits are members only.
    const Stats stats = value_or_fail(read_stats(scratch_.instance()));
    EXPECT_EQ(stats.hit[scratch_.table().read().sets[0].slot].packets, members.size());
}

// Only the set's own fields are compared. A packet without these fields is no member.
TEST_F(Verification, OfFlows) {
    KeySet keys(value_or_fail(parse_fields("src,dport")));
    for (int i = 0; i < 2000; i++)
        keys.add(value_or_fail(parse_key(fmt::format("10.1.{}.{} {}", i / 256, i % 256, i), keys.fields())));
    const Verified set = verified(std::move(keys));
    put(set);
    const auto packet = [](int i, int port, int sport, const char* to) {
        return Ethernet{} / IPv4{.src = fmt::format("10.1.{}.{}", i / 256, i % 256), .dst = to} /
               Tcp{.sport = static_cast<std::uint16_t>(sport), .dport = static_cast<std::uint16_t>(port)};
    };
    for (int i = 0; i < 2000; i++) {
        ASSERT_TRUE(drops(packet(i, i, 1, "10.0.0.1"))) << i;
        ASSERT_TRUE(drops(packet(i, i, 60'000 - i, "10.9.9.9"))) << i;
    }
    for (int i = 0; i < 2000; i++) {
        ASSERT_FALSE(drops(packet(i, i + 1, i, "10.0.0.1"))) << i;
        ASSERT_FALSE(drops(packet(i, i + 20'000, i, "10.0.0.1"))) << i;
    }
    expect_rate(counted(), rate_from_bits(set.image.file().expected_fpr));
    EXPECT_FALSE(drops(Ethernet{} / IPv4{.src = "10.1.0.0"} / Icmp{}));
}

// The oracle is the list of ranges itself.
TEST_F(Verification, OfPrefixes) {
    std::mt19937_64 random(12);
    std::vector<AddressRange> ranges;
    KeySet keys(SIEVE_FIELD_SRC);
    const auto number = [](std::uint32_t address) { return address_number(0, sieve_v4_mapped(address)); };
    for (int i = 0; i < 1500; i++) {
        const int length = 18 + static_cast<int>(random() % 14);
        const std::uint32_t first = random_address(random) & ~((1U << (32 - length)) - 1);
        ranges.push_back({number(first), number(first + ((1U << (32 - length)) - 1))});
    }
    for (int i = 0; i < 500; i++) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(random_address(random));
        keys.add(key);
        ranges.push_back({address_number(0, key.word[1]), address_number(0, key.word[1])});
    }
    const std::vector<AddressRange> all = ranges;
    ranges.resize(1500);
    const Verified set = verified(std::move(keys), std::move(ranges));
    ASSERT_GE(set.image.probes().count[SIEVE_FAMILY_V4], 2) << "one length only tests little";
    put(set);
    const auto is_member = [&](std::uint32_t address) {
        const uint128 wanted = number(address);
        for (const AddressRange& range : all)
            if (wanted >= range.first && wanted <= range.last) return true;
        return false;
    };
    std::uint64_t members = 0, non_members = 0;
    for (const AddressRange& range : all)
        for (const uint128 address :
             {range.first, range.last, range.first + (range.last - range.first) / 2}) {
            ASSERT_TRUE(drops(from(static_cast<std::uint32_t>(address))));
            members++;
        }
    // The neighbours of members are the hardest non-members.
    for (const AddressRange& range : all)
        for (const uint128 address : {range.first - 1, range.last + 1}) {
            const auto v4 = static_cast<std::uint32_t>(address);
            ASSERT_EQ(drops(from(v4)), is_member(v4)) << text_of(v4);
        }
    const sieve_verified before = counted();
    for (int i = 0; i < 5000; i++) {
        const std::uint32_t address = random_address(random);
        const bool member = is_member(address);
        non_members += member ? 0 : 1;
        ASSERT_EQ(drops(from(address)), member) << text_of(address);
    }
    const sieve_verified grown = difference(counted(), before);
    EXPECT_EQ(grown.non_members, non_members);
    expect_rate(grown, rate_from_bits(set.image.file().expected_fpr));
    EXPECT_GT(members, 0U);
}

// Whatever goes wrong, the filter's answer stands: prefer a false positive to a missed member.
TEST_F(Verification, WithoutItsExactSetTheFilterDecides) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    ASSERT_TRUE(scratch_.ask_only(map.fd()));
    const std::uint64_t bank = scratch_.instance().control().active;
    scratch_.instance().control().bank[bank].entry[0].flags = SIEVE_ENTRY_VERIFY;
    EXPECT_TRUE(drops(from(0x0a000001)));
    EXPECT_FALSE(drops(from(0x0a000002)));
}

TEST(ExactSet, TheTableHoldsItWithTheFilter) {
    const auto exists = [](std::uint32_t id) {
        return static_cast<bool>(UniqueFd(bpf_map_get_fd_by_id(id)));
    };
    const Scratch scratch = value_or_fail(Scratch::load(false));
    const auto keys = [](const std::string& text) {
        KeySet set(SIEVE_FIELD_SRC);
        set.add(value_or_fail(parse_key(text, SIEVE_FIELD_SRC)));
        return set;
    };
    std::uint32_t first = 0, second = 0;
    {
        const Verified set = verified(keys("10.0.0.1"), {}, 64);
        first = set.exact.id();
        const auto plain = map_of(image_of({"10.0.0.9"}));
        ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS,
                                             {{"plain", SIEVE_ACTION_COUNT, plain.fd()},
                                              {"set", SIEVE_ACTION_DROP, set.map.fd(), 0, set.exact.fd()}}}));
    }
    // Another order keeps both maps. The filter of the other set is not verified.
    ASSERT_TRUE(scratch.table().replace(
        {SIEVE_ACTION_DROP, {{"set", SIEVE_ACTION_PASS, -1}, {"plain", SIEVE_ACTION_COUNT, -1}}}));
    TableInForce table = scratch.table().read();
    EXPECT_EQ(table.find("set")->exact_id, first);
    EXPECT_EQ(table.find("plain")->exact_id, 0U);
    {
        const Verified set = verified(keys("10.0.0.2"), {}, 64);
        second = set.exact.id();
        ASSERT_TRUE(scratch.table().replace(
            {SIEVE_ACTION_DROP, {{"set", SIEVE_ACTION_PASS, set.map.fd(), 0, set.exact.fd()}}}));
    }
    EXPECT_FALSE(exists(first));
    EXPECT_TRUE(exists(second));
    const auto verdict = [&](std::uint32_t source) {
        return value_or_fail(scratch.run(from(source).bytes()));
    };
    EXPECT_EQ(verdict(0x0a000002), XDP_PASS);
    EXPECT_EQ(verdict(0x0a000001), XDP_DROP);
    // If a new filter comes without an exact set, the old exact set does not verify it.
    const auto plain = map_of(image_of({"10.0.0.1"}));
    ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_DROP, {{"set", SIEVE_ACTION_PASS, plain.fd()}}}));
    EXPECT_FALSE(exists(second));
    EXPECT_EQ(verdict(0x0a000001), XDP_PASS);
    EXPECT_EQ(scratch.table().read().find("set")->exact_id, 0U);
}

// The controller dies before each of its steps: no member is ever missed, and the maps do not get mixed up.
TEST(ExactSet, DeathAtEveryStepMissesNoMember) {
    struct Death {};
    const Scratch scratch = value_or_fail(Scratch::load(false));
    const auto list = [](std::initializer_list<const char*> texts) {
        KeySet set(SIEVE_FIELD_SRC);
        for (const char* text : texts) set.add(value_or_fail(parse_key(text, SIEVE_FIELD_SRC)));
        return set;
    };
    const Verified older = verified(list({"10.0.0.1", "10.0.0.9"}), {}, 64);
    const Verified newer = verified(list({"10.0.0.2", "10.0.0.9"}), {}, 64);
    const auto wanted = [](const Verified& set) {
        return WantedTable{SIEVE_ACTION_PASS, {{"set", SIEVE_ACTION_DROP, set.map.fd(), 0, set.exact.fd()}}};
    };
    const auto drops = [&](std::uint32_t source) {
        return value_or_fail(scratch.run(from(source).bytes())) == XDP_DROP;
    };
    bool finished = false;
    std::size_t deadly = 1;
    for (; !finished; deadly++) {
        SCOPED_TRACE(fmt::format("death before step {}", deadly));
        ASSERT_TRUE(scratch.table().replace(wanted(older)));
        SetTable table = scratch.table();
        std::size_t steps = 0;
        table.set_step_hook([&](std::string_view) {
            if (++steps == deadly) throw Death{};
        });
        try {
            ASSERT_TRUE(table.replace(wanted(newer)));
            finished = true;
        } catch (const Death&) {
        }
        EXPECT_TRUE(drops(0x0a000009));
        EXPECT_NE(drops(0x0a000001), drops(0x0a000002)) << "a filter with the other one's keys";
    }
    EXPECT_GT(deadly, 6U);
}

TEST(ExactSet, PreflightFindsOneThatDoesNotBelong) {
    std::mt19937_64 random(13);
    KeySet keys(SIEVE_FIELD_SRC);
    for (int i = 0; i < 3000; i++) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(random_address(random));
        keys.add(key);
    }
    const Verified set = verified(std::move(keys));
    auto exact = value_or_fail(exact_keys(Members(set.keys, set.ranges), set.image, "list"));
    Preflight preflight = value_or_fail(Preflight::start());
    const auto good = preflight.check(set.image, set.map, "set", &set.exact);
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_EQ(good->matched, 0U);
    EXPECT_GT(good->avoided, 300U);
    const auto plain = preflight.check(set.image, set.map, "set");
    ASSERT_TRUE(plain) << plain.error().message;
    EXPECT_GT(plain->matched, 300U);
    EXPECT_EQ(plain->avoided, 0U);

    exact.resize(exact.size() / 2); // missing keys
    const ExactSet half = value_or_fail(ExactSet::create(set.image, exact, "half"));
    EXPECT_FALSE(preflight.check(set.image, set.map, "set", &half));
}

TEST(ExactKeys, RefuseAnotherFeed) {
    const auto list = [](const std::vector<std::string>& texts) {
        KeySet set(SIEVE_FIELD_SRC);
        for (const std::string& text : texts) set.add(value_or_fail(parse_key(text, SIEVE_FIELD_SRC)));
        return set;
    };
    const Image image = image_of({"10.0.0.1", "10.0.0.2", "10.0.0.3"});
    EXPECT_EQ(value_or_fail(
                  exact_keys(Members(list({"10.0.0.3", "10.0.0.1", "10.0.0.2", "10.0.0.1"}), {}), image, "f"))
                  .size(),
              3U);
    const AddressRange range{address_number(0, sieve_v4_mapped(0x0a000000)),
                             address_number(0, sieve_v4_mapped(0x0a0000ff))};
    for (const auto& [texts, ranges, why] :
         std::vector<std::tuple<std::vector<std::string>, std::vector<AddressRange>, std::string>>{
             {{"10.0.0.1", "10.0.0.2"}, {}, "2 keys instead of 3"},
             {{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, {}, "4 keys instead of 3"},
             {{"10.0.0.1", "10.0.0.2", "10.0.0.4"}, {}, "not the same"},
             {{"10.0.0.1", "10.0.0.2"}, {range}, "ranges"}}) {
        const auto exact = exact_keys(Members(list(texts), ranges), image, "feed.txt");
        ASSERT_FALSE(exact) << why;
        EXPECT_EQ(exact.error().kind, ErrorKind::bad_input);
        EXPECT_NE(exact.error().message.find("feed.txt"), std::string::npos) << exact.error().message;
        EXPECT_NE(exact.error().message.find(why), std::string::npos) << exact.error().message;
    }
}

sieve_key source_key(std::uint32_t address) {
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(address);
    return key;
}

// What the kernel has agrees with what is said, and is at most 20 bytes for each address.
TEST(ExactSet, TakesTheMemoryThatIsSaid) {
    const Image image = image_of({"10.0.0.1"});
    std::vector<sieve_key> keys;
    for (std::uint32_t i = 0; i < 20'000; i++) keys.push_back(source_key(i));
    const ExactSet set = value_or_fail(ExactSet::create(image, keys, "test"));
    EXPECT_EQ(value_or_fail(read_exact_bytes(set.id())), set.bytes());
    EXPECT_LE(set.bytes(), 17 * keys.size());
    std::ifstream info(fmt::format("/proc/self/fdinfo/{}", set.fd()));
    std::uint64_t locked = 0;
    for (std::string word; info >> word;)
        if (word == "memlock:") info >> locked;
    // Before Linux 6.4, the kernel does not count: it adds the map's key to each line, and says the product.
    constexpr std::uint64_t page = 4096;
    const std::uint64_t estimate =
        set.bytes() / SIEVE_LINE_BYTES * (SIEVE_LINE_BYTES + sizeof(std::uint64_t));
    if (locked == (estimate + page - 1) / page * page) return;
    EXPECT_NEAR(static_cast<double>(set.bytes()), static_cast<double>(locked), 8192);
}

TEST(ExactSet, HoldsKeysAndTheirNotes) {
    const Image image = image_of({"10.0.0.1"});
    std::vector<sieve_key> keys;
    for (std::uint32_t i = 1; i <= 5'000; i++) keys.push_back(source_key(i));
    const ExactSet made = value_or_fail(ExactSet::create(image, keys, "set", 10));
    MappedExactSet set = value_or_fail(MappedExactSet::open(made.id()));
    EXPECT_EQ(set.most(), 5'010U);
    EXPECT_EQ(set.all().size(), 5'000U);
    EXPECT_FALSE(set.find(source_key(0)));
    EXPECT_EQ(set.find(source_key(1)), (KeyNote{.state = SIEVE_EXACT_IN}));
    ASSERT_TRUE(value_or_fail(set.put(source_key(1), {.state = SIEVE_EXACT_UNSURE})));
    EXPECT_EQ(set.find(source_key(1)), (KeyNote{.state = SIEVE_EXACT_UNSURE}));
    for (std::uint32_t i = 6'001; i <= 6'010; i++)
        ASSERT_TRUE(value_or_fail(set.put(source_key(i), {.state = SIEVE_EXACT_UNSURE}))) << "room for ten";
    EXPECT_EQ(set.all().size(), 5'010U);
    ASSERT_TRUE(set.erase(source_key(1)));
    ASSERT_TRUE(set.erase(source_key(1)));
    EXPECT_FALSE(set.find(source_key(1)));
    EXPECT_EQ(set.all().size(), 5'009U);
    sieve_key other = source_key(7);
    other.word[4] = 7;
    EXPECT_FALSE(set.find(other));
    EXPECT_FALSE(set.put(other, {})) << "a set of addresses has no ports";
}

// Addresses of which none comes or goes lie plain, without tags.
TEST(ExactSet, ThatStaysIsListedOnly) {
    const Image image = image_of({"10.0.0.1"});
    std::vector<sieve_key> keys;
    for (std::uint32_t i = 1; i <= 5'000; i++) keys.push_back(source_key(i));
    const ExactSet made = value_or_fail(ExactSet::create(image, keys, "set"));
    MappedExactSet set = value_or_fail(MappedExactSet::open(made.id()));
    EXPECT_EQ(set.all().size(), 5'000U);
    EXPECT_EQ(set.find(source_key(5'000)), (KeyNote{.state = SIEVE_EXACT_IN}));
    EXPECT_FALSE(set.find(source_key(5'001)));
    EXPECT_FALSE(set.put(source_key(5'001), {}));
    EXPECT_FALSE(set.erase(source_key(1)));
    EXPECT_EQ(set.all().size(), 5'000U);
}

TEST(ExactSet, OpensNoOtherMap) {
    const auto filter = map_of(image_of({"10.0.0.1"}));
    const auto other = MappedExactSet::open(filter.id());
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().message.find("holds no keys"), std::string::npos) << other.error().message;
    EXPECT_FALSE(MappedExactSet::open(0));
    EXPECT_FALSE(read_exact_bytes(0));
}

TEST(ExactSet, WhatIsRefusedIsSaid) {
    const Image image = image_of({"10.0.0.1"});
    const std::vector<sieve_key> keys = {source_key(1)};
    const rlim_t limit = descriptors_left(0);
    const auto scarce = [&] {
        const Limit none(RLIMIT_NOFILE, limit);
        return ExactSet::create(image, keys, "bad");
    }();
    ASSERT_FALSE(scarce);
    EXPECT_NE(scarce.error().message.find("set bad"), std::string::npos) << scarce.error().message;
    EXPECT_NE(scarce.error().message.find(fmt::format("errno {}", EMFILE)), std::string::npos)
        << scarce.error().message;
    const auto huge = ExactSet::create(image, {keys.data(), std::size_t{1} << 32}, "bad");
    ASSERT_FALSE(huge);
    EXPECT_NE(huge.error().message.find("4294967296 keys"), std::string::npos) << huge.error().message;
    sieve_key port = source_key(2);
    port.word[4] = 443;
    const auto other = ExactSet::create(image, std::vector{port}, "bad");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().kind, ErrorKind::bad_input);
}

// Packets ask for members all the time, while other keys come and go in the same lines.
TEST(ExactSet, ChangesUnderPacketsMissNoMember) {
    constexpr std::uint32_t stable = 300, others = 300;
    std::mt19937_64 random(21);
    KeySet keys(SIEVE_FIELD_SRC);
    for (std::uint32_t i = 0; i < stable + others; i++) keys.add(source_key(0x0a000000 + i));
    const Verified set = verified(std::move(keys), {}, 64, 100);
    const Scratch scratch = value_or_fail(Scratch::load(false));
    ASSERT_TRUE(scratch.ask_only(set.map.fd(), set.exact.fd()));
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> asked{0}, missed{0};
    std::thread reader([&] {
        for (std::uint32_t i = 0; !done; i = (i + 1) % stable) {
            if (value_or_fail(scratch.run(from(0x0a000000 + i).bytes())) != XDP_DROP) missed++;
            asked++;
        }
    });
    MappedExactSet live = value_or_fail(MappedExactSet::open(set.exact.id()));
    std::set<std::uint32_t> there;
    for (std::uint32_t i = 0; i < others; i++) there.insert(i);
    std::uint64_t refused = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    for (int change = 0; change < 200'000 && std::chrono::steady_clock::now() < end; change++) {
        const auto other = static_cast<std::uint32_t>(random() % others);
        const sieve_key key = source_key(0x0a000000 + stable + other);
        if (there.erase(other) > 0)
            EXPECT_TRUE(live.erase(key));
        else if (value_or_fail(live.put(key, {.state = static_cast<std::uint32_t>(random() % 2)})))
            there.insert(other);
        else
            refused++;
        if (change % 100 == 0) {
            const sieve_key member = source_key(0x0a000000 + static_cast<std::uint32_t>(random() % stable));
            EXPECT_TRUE(live.find(member));
        }
    }
    done = true;
    reader.join();
    EXPECT_EQ(missed, 0U) << "of " << asked;
    EXPECT_GT(asked, 1000U);
    EXPECT_EQ(refused, 0U);
    for (std::uint32_t i = 0; i < others; i++)
        EXPECT_EQ(value_or_fail(scratch.run(from(0x0a000000 + stable + i).bytes())) == XDP_DROP,
                  there.contains(i));
}

} // namespace
} // namespace sieve::kernel
