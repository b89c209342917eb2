// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Conditions on ports and protocol, in the kernel: random ones against a model that knows packets and lists
// of values, and nothing of the program.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/control/spec/condition.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve {
namespace {

using namespace test;
using kernel::HookPoint;
using kernel::WantedSet;
using kernel::WantedTable;

// What the model knows of a packet.
struct Seen {
    std::string source;
    unsigned protocol = 0;
    bool ports = false;
    unsigned sport = 0;
    unsigned dport = 0;
};

struct Sent {
    Bytes bytes;
    Seen seen;
};

// The values of a field that a condition lists, each with both ends; none: it says nothing about the field.
using Values = std::vector<std::pair<unsigned, unsigned>>;

struct ModelCondition {
    Values dport, sport, protocol;

    static bool holds(const Values& values, unsigned value) {
        return std::ranges::any_of(
            values, [&](const auto& one) { return one.first <= value && value <= one.second; });
    }
    [[nodiscard]] bool met(const Seen& packet) const {
        if ((!dport.empty() || !sport.empty()) && !packet.ports) return false;
        return (dport.empty() || holds(dport, packet.dport)) &&
               (sport.empty() || holds(sport, packet.sport)) &&
               (protocol.empty() || holds(protocol, packet.protocol));
    }
    static std::string text(const Values& values) {
        std::vector<std::string> words;
        for (const auto& [first, last] : values)
            words.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
        return fmt::format("{}", fmt::join(words, ","));
    }
    [[nodiscard]] sieve_condition parsed() const {
        sieve_condition condition{};
        for (const control::ConditionPart& part : control::condition_parts()) {
            const Values& values = part.part == SIEVE_PART_DPORT   ? dport
                                   : part.part == SIEVE_PART_SPORT ? sport
                                                                   : protocol;
            if (values.empty()) continue;
            const Status done = control::set_condition(condition, part, text(values));
            EXPECT_TRUE(done) << done.error().message;
        }
        return condition;
    }
};

// Ports that meet each other often: few, and at the ends of everything.
unsigned some_port(std::mt19937_64& random) {
    constexpr unsigned ends[] = {0, 1, 22, 443, 1023, 1024, 65534, 65535};
    return random() % 2 == 0 ? ends[random() % std::size(ends)] : static_cast<unsigned>(random() % 64 + 1000);
}

constexpr unsigned protocols[] = {1, 6, 17, 33, 47, 58, 132, 136};

Values some_values(std::mt19937_64& random, bool ports) {
    Values values;
    if (random() % 3 == 0) return values;
    const std::size_t count = random() % 4 == 0 ? 8 : random() % 3 + 1;
    for (std::size_t i = 0; i < count; i++) {
        if (!ports) {
            const unsigned protocol = protocols[random() % std::size(protocols)];
            values.emplace_back(protocol, protocol);
            continue;
        }
        const unsigned one = some_port(random), other = random() % 2 == 0 ? one : some_port(random);
        values.emplace_back(std::min(one, other), std::max(one, other));
    }
    return values;
}

Packet with_transport(const Packet& below, const Seen& seen) {
    const auto sport = static_cast<std::uint16_t>(seen.sport), dport = static_cast<std::uint16_t>(seen.dport);
    switch (seen.protocol) {
    case 6:
        return below / Tcp{.sport = sport, .dport = dport} / Payload{.bytes = 8};
    case 17:
        return below / Udp{.sport = sport, .dport = dport} / Payload{.bytes = 8};
    case 33:
        return below / Dccp{.sport = sport, .dport = dport} / Payload{.bytes = 8};
    case 132:
        return below / Sctp{.sport = sport, .dport = dport} / Payload{.bytes = 8};
    case 136:
        return below / UdpLite{.sport = sport, .dport = dport} / Payload{.bytes = 8};
    case 1:
        return below / Icmp{};
    case 58:
        return below / Icmp6{};
    default:
        return below / Payload{.bytes = 24, .protocol = static_cast<std::uint8_t>(seen.protocol)};
    }
}

std::string v4(unsigned i) {
    return fmt::format("10.0.0.{}", i);
}
std::string v6(unsigned i) {
    return fmt::format("2001:db8::{:x}", i);
}
constexpr unsigned hosts = 24;

// Of either family, with ports or without, whole, a first fragment or a later one, tagged or not.
Sent some_packet(std::mt19937_64& random) {
    Seen seen;
    const bool six = random() % 3 == 0;
    const unsigned host = static_cast<unsigned>(random() % hosts) + 1;
    seen.source = six ? v6(host) : v4(host);
    seen.protocol = protocols[random() % std::size(protocols)];
    seen.ports = seen.protocol == 6 || seen.protocol == 17 || seen.protocol == 33 || seen.protocol == 132 ||
                 seen.protocol == 136;
    seen.sport = some_port(random);
    seen.dport = some_port(random);
    Packet packet{Layer(Ethernet{})};
    if (random() % 4 == 0) packet = packet / Vlan{};
    const unsigned cut = static_cast<unsigned>(random() % 4); // 1: a first fragment, 2: a later one
    if (cut == 2) seen.ports = false;
    const unsigned offset = cut == 2 ? 100 : 0;
    if (six) {
        packet = packet / IPv6{.src = seen.source};
        if (cut == 1 || cut == 2) packet = packet / Fragment6{.offset = offset, .more = cut == 1};
    } else {
        packet = packet / IPv4{.src = seen.source, .offset = offset, .more = cut == 1};
    }
    return {with_transport(packet, seen).bytes(), seen};
}

struct ModelSet {
    std::string name;
    std::set<std::string> sources;
    sieve_action action = SIEVE_ACTION_DROP;
    ModelCondition condition;
    KeySet keys{SIEVE_FIELD_SRC};
    std::unique_ptr<Image> image;
    std::unique_ptr<kernel::FilterMap> map;
};

std::vector<ModelSet> some_sets(std::mt19937_64& random, std::size_t count, sieve_kind kind) {
    std::vector<ModelSet> sets(count);
    for (ModelSet& set : sets) {
        set.name = fmt::format("set{}", &set - sets.data());
        for (unsigned host = 1; host <= hosts; host++) {
            if (random() % 2 == 0) set.sources.insert(v4(host));
            if (random() % 2 == 0) set.sources.insert(v6(host));
        }
        set.sources.insert(v4(1));
        for (const std::string& source : set.sources)
            set.keys.add(value_or_fail(parse_key(source, SIEVE_FIELD_SRC)));
        constexpr sieve_action actions[] = {SIEVE_ACTION_DROP, SIEVE_ACTION_PASS, SIEVE_ACTION_COUNT};
        set.action = actions[random() % std::size(actions)];
        if (random() % 4 != 0)
            set.condition = {some_values(random, true), some_values(random, true),
                             some_values(random, false)};
        set.image = std::make_unique<Image>(image_of_keys(set.keys, 1, 60, kind));
        set.map = std::make_unique<kernel::FilterMap>(map_of(*set.image));
    }
    return sets;
}

WantedTable table_of(const std::vector<ModelSet>& sets) {
    WantedTable table{.default_action = SIEVE_ACTION_PASS, .sets = {}};
    for (const ModelSet& set : sets)
        table.sets.push_back({.name = set.name,
                              .action = set.action,
                              .map_fd = set.map->fd(),
                              .condition = set.condition.parsed()});
    return table;
}

// What becomes of the packet: the sets that count it, the last of which decides unless it only counts.
std::vector<const ModelSet*> model(const std::vector<ModelSet>& sets, const Seen& seen) {
    std::vector<const ModelSet*> hits;
    for (const ModelSet& set : sets) {
        if (!set.sources.contains(seen.source) || !set.condition.met(seen)) continue;
        hits.push_back(&set);
        if (set.action != SIEVE_ACTION_COUNT) break;
    }
    return hits;
}

kernel::Scratch scratch_at(HookPoint point = HookPoint::xdp) {
    return value_or_fail(kernel::Scratch::load(true, point));
}

// Sends random packets. Returns how many of them a condition kept from a set that held their address.
std::size_t expect_model(const kernel::Scratch& scratch, const std::vector<ModelSet>& sets,
                         std::mt19937_64& random, std::size_t packets) {
    const kernel::TableInForce table = scratch.table().read();
    std::size_t kept_out = 0;
    for (std::size_t i = 0; i < packets; i++) {
        const Sent sent = some_packet(random);
        const std::vector<const ModelSet*> wanted = model(sets, sent.seen);
        std::uint64_t hits = 0;
        std::uint32_t decision = SIEVE_NO_SET;
        sieve_action action = SIEVE_ACTION_PASS;
        for (const ModelSet* set : wanted) {
            const std::uint32_t slot = table.find(set->name)->slot;
            hits |= 1ULL << slot;
            if (set->action == SIEVE_ACTION_COUNT) continue;
            decision = slot;
            action = set->action;
        }
        for (const ModelSet& set : sets)
            kept_out += set.sources.contains(sent.seen.source) && !set.condition.met(sent.seen) ? 1 : 0;
        const std::uint32_t verdict = value_or_fail(scratch.run(sent.bytes));
        const sieve_trace trace = scratch.trace();
        EXPECT_EQ(trace.hits, hits) << sent.seen.source << " " << sent.seen.protocol << " " << sent.seen.sport
                                    << " " << sent.seen.dport << (sent.seen.ports ? "" : " without ports");
        EXPECT_EQ(trace.decision, decision);
        EXPECT_EQ(verdict, action == SIEVE_ACTION_DROP ? SIEVE_VERDICT_DROP : SIEVE_VERDICT_PASS);
        if (testing::Test::HasFailure()) break;
    }
    return kept_out;
}

class Condition : public testing::TestWithParam<HookPoint> {};

TEST_P(Condition, RandomTablesAgreeWithTheModel) {
    const kernel::Scratch loaded = scratch_at(GetParam());
    std::mt19937_64 random(7);
    std::size_t kept_out = 0;
    for (const std::size_t count : {1, 1, 1, 2, 2, 3, 5, 8, 16, 16}) {
        const std::vector<ModelSet> sets =
            some_sets(random, count, count % 2 == 0 ? SIEVE_KIND_XORSAT : SIEVE_KIND_EXACT);
        const Status put = loaded.table().replace(table_of(sets));
        ASSERT_TRUE(put) << put.error().message;
        kept_out += expect_model(loaded, sets, random, bounded(2000));
        if (HasFailure()) return;
    }
    EXPECT_GT(kept_out, 1000U);
}

INSTANTIATE_TEST_SUITE_P(Hooks, Condition,
                         testing::Values(HookPoint::xdp, HookPoint::ingress, HookPoint::egress),
                         [](const auto& info) { return kernel::hook_point_name(info.param); });

// A set that the joint filter names, and whose condition the packet does not meet, leaves the packet to those
// behind it, which the joint filter does not name.
TEST(ConditionJoined, RandomTablesAgreeWithTheModel) {
    const kernel::Scratch loaded = scratch_at();
    std::mt19937_64 random(11);
    for (const bool exact : {true, false}) {
        for (const std::size_t count : {2, 3, 5, 16}) {
            const std::vector<ModelSet> sets = some_sets(random, count, SIEVE_KIND_XORSAT);
            std::vector<const KeySet*> lists;
            std::vector<std::string> names;
            for (const ModelSet& set : sets) {
                lists.push_back(&set.keys);
                names.push_back(set.name);
            }
            const auto bits = exact ? std::nullopt : std::optional<double>(32);
            const JointFilter filter = value_or_fail(
                JointFilter::build(lists, {.fpr = {}, .bits_per_key = bits, .seed = 1, .exact = exact}));
            const kernel::FilterMap map = value_or_fail(kernel::FilterMap::create(filter.lines(), "joint"));
            WantedTable table = table_of(sets);
            table.joint = kernel::WantedJoint{.map_fd = map.fd(), .sets = names};
            const Status put = loaded.table().replace(table);
            ASSERT_TRUE(put) << put.error().message;
            ASSERT_NE(loaded.table().read().joint_id, 0U);
            EXPECT_GT(expect_model(loaded, sets, random, bounded(2000)), 100U);
            if (HasFailure()) return;
        }
    }
}

sieve_condition to_port(const std::string& ports) {
    return ModelCondition{.dport = {{std::stoul(ports), std::stoul(ports)}}, .sport = {}, .protocol = {}}
        .parsed();
}

Bytes udp(const std::string& source, std::uint16_t dport) {
    return (Ethernet{} / IPv4{.src = source} / Udp{.dport = dport} / Payload{.bytes = 18}).bytes();
}

// The table says what it was given, in each of its places, and changes without another filter.
TEST(ConditionTable, IsReadAsItWasPut) {
    const kernel::Scratch loaded = scratch_at();
    const auto map = map_of(image_of({"10.0.0.1"}));
    std::vector<WantedSet> sets;
    for (unsigned i = 0; i < SIEVE_MAX_SETS; i++)
        sets.push_back({.name = fmt::format("s{}", i),
                        .map_fd = map.fd(),
                        .condition = i % 3 == 0 ? sieve_condition{} : to_port(fmt::format("{}", 100 + i))});
    ASSERT_TRUE(loaded.table().replace({.sets = sets}));
    kernel::TableInForce table = loaded.table().read();
    for (unsigned i = 0; i < SIEVE_MAX_SETS; i++)
        EXPECT_TRUE(table.sets[i].condition == sets[i].condition) << i;
    EXPECT_EQ(loaded.run(udp("10.0.0.1", 101)), SIEVE_VERDICT_DROP);
    std::vector<WantedSet> fewer{{.name = "s1", .condition = to_port("7")}};
    ASSERT_TRUE(loaded.table().replace({.sets = fewer}));
    table = loaded.table().read();
    ASSERT_EQ(table.sets.size(), 1U);
    EXPECT_TRUE(table.sets[0].condition == to_port("7"));
    EXPECT_EQ(loaded.run(udp("10.0.0.1", 101)), SIEVE_VERDICT_PASS);
    EXPECT_EQ(loaded.run(udp("10.0.0.1", 7)), SIEVE_VERDICT_DROP);
    fewer[0].condition = {};
    ASSERT_TRUE(loaded.table().replace({.sets = fewer}));
    EXPECT_EQ(loaded.run(udp("10.0.0.1", 101)), SIEVE_VERDICT_DROP);
}

// A packet that the set is not asked about is no non-member, and takes nothing from a limit.
TEST(ConditionTable, OtherPacketsAreNotCounted) {
    const kernel::Scratch loaded = scratch_at();
    KeySet keys(SIEVE_FIELD_SRC);
    keys.add(value_or_fail(parse_key("10.0.0.1", SIEVE_FIELD_SRC)));
    const Image image = image_of_keys(keys, 1, 32, SIEVE_KIND_BLOCKED);
    const kernel::FilterMap map = map_of(image);
    const kernel::ExactSet exact = value_or_fail(kernel::ExactSet::create(
        image, value_or_fail(exact_keys(Members(std::move(keys), {}), image, "list")), "set"));
    ASSERT_TRUE(loaded.table().replace(
        {.sets = {{.name = "set", .map_fd = map.fd(), .exact_fd = exact.fd(), .condition = to_port("22")}}}));
    const std::uint32_t slot = loaded.table().read().sets[0].slot;
    EXPECT_EQ(loaded.run(udp("10.0.0.2", 443)), SIEVE_VERDICT_PASS);
    EXPECT_EQ(loaded.run(udp("10.0.0.1", 443)), SIEVE_VERDICT_PASS);
    auto stats = kernel::read_stats(loaded.instance());
    EXPECT_EQ(stats->verified[slot].non_members, 0U);
    EXPECT_EQ(stats->hit[slot].packets, 0U);
    EXPECT_EQ(loaded.run(udp("10.0.0.2", 22)), SIEVE_VERDICT_PASS);
    EXPECT_EQ(loaded.run(udp("10.0.0.1", 22)), SIEVE_VERDICT_DROP);
    stats = kernel::read_stats(loaded.instance());
    EXPECT_EQ(stats->verified[slot].non_members, 1U);
    EXPECT_EQ(stats->hit[slot].packets, 1U);

    ASSERT_TRUE(loaded.table().replace({.sets = {{.name = "few",
                                                  .action = SIEVE_ACTION_LIMIT,
                                                  .map_fd = map.fd(),
                                                  .target = 1,
                                                  .burst = 2,
                                                  .condition = to_port("22")}}}));
    for (int i = 0; i < 10; i++) EXPECT_EQ(loaded.run(udp("10.0.0.1", 443)), SIEVE_VERDICT_PASS);
    EXPECT_EQ(loaded.run(udp("10.0.0.1", 22)), SIEVE_VERDICT_PASS) << "the bucket is full";
}

} // namespace
} // namespace sieve
