// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Prefixes among several fields that come and go in a set in force, against a plain list of them.
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <sieve/prefix.h>

#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "model/flow_list_model.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/keys/members_of_texts.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using model::FlowEntry;
using model::FlowForm;
using model::FlowHosts;
using model::FlowList;
using model::FlowPacket;
using test::FakeKernel;
using test::Files;
using test::members_of_texts;
using namespace std::chrono_literals;

struct Fields {
    const char* name;
    std::uint32_t fields;
    FlowForm form;
};
constexpr Fields port_of_source{
    "SourceAndPort", SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT, {true, false, true, false}};
constexpr Fields both_addresses{
    "BothAddresses", SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_PROTO, {true, true, false, true}};

class ChangeFlowPrefixes : public testing::TestWithParam<std::tuple<Fields, bool>> {
  protected:
    const Fields fields = std::get<0>(GetParam());
    const bool verified = std::get<1>(GetParam());
    // Of the exact set. Where many entries may share keys with one, all of them are read instead.
    std::size_t room = 2500;
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    void put(const std::vector<std::string>& lines, double bits_per_key, std::vector<std::uint32_t> v4 = {},
             std::vector<std::uint32_t> v6 = {}) {
        FeedSpec spec;
        spec.build.kind.kind = SIEVE_KIND_DDLCBF;
        spec.build.bits_per_key = bits_per_key;
        spec.build.seed = 3;
        spec.build.prefixes.lengths = {std::move(v4), std::move(v6)};
        spec.build.prefixes.max_probes = 8;
        spec.fields = fields.fields;
        SetSpec set;
        set.name = "set";
        set.feed = Files::quick(spec);
        set.sources = {files.feed("list", lines)};
        if (verified) set.verify.emplace();
        const auto opened = open_set(set, {});
        ASSERT_TRUE(opened) << opened.error().message;
        kernel::SetInForce& in_force = kernel.put("set", SIEVE_ACTION_DROP, verified);
        kernel.put_filter(in_force.map_id, opened->image);
        if (verified) kernel.put_exact(in_force.exact_id, *opened->exact, room);
    }

    [[nodiscard]] kernel::SetInForce& set() { return kernel.running.table.sets[0]; }

    // What the packet path does.
    bool matches(const sieve_key& key) {
        const auto filter = kernel.open_filter(set().map_id);
        const sieve_lookup& lookup = (*filter)->lookup();
        const sieve_probes& probes = (*filter)->probes();
        const int family = sieve_key_family(&key, fields.fields);
        bool hit = false, exact = set().exact_id == 0;
        for (int i = 0; i < probes.count[family]; i++) {
            sieve_key stored;
            sieve_store_key(&key,
                            sieve_pack_probe(probes.length[family][i], probes.destination[family][i],
                                             probes.transport[family][i]),
                            &stored);
            hit = hit || kind_of(lookup).holds(lookup, sieve_hash_stored(&stored, lookup.hash_key),
                                               (*filter)->lines().data());
            exact = exact || kernel.keys.at(set().exact_id).notes.contains(std::to_array(stored.word));
        }
        return hit && exact;
    }
    bool matches(const std::string& text) { return matches(parse_key(text, fields.fields).value()); }
    bool matches(const FlowPacket& packet) {
        sieve_key key{};
        const auto put_address = [&](int word, unsigned host) {
            key.word[word] = packet.v4 ? 0 : 0x20010db800000000;
            key.word[word + 1] = packet.v4 ? sieve_v4_mapped(0x0a000000 | host) : host;
        };
        if (fields.form.source) put_address(0, packet.source);
        if (fields.form.destination) put_address(2, packet.destination);
        if (fields.form.port) key.word[4] |= std::uint64_t{packet.port} << SIEVE_DPORT_SHIFT;
        if (fields.form.protocol) key.word[4] |= packet.protocol;
        return matches(key);
    }

    Result<KeysChanged> change(KeyChange change, const std::vector<std::string>& texts,
                               KeyRequest request = {}) {
        request.change = change;
        return change_keys(kernel, eth0, "set", members_of_texts(texts, fields.fields), request, {});
    }
    std::uint64_t stored() { return (*kernel.open_filter(set().map_id))->file().keys; }

    // Every packet that an entry holds matches. In a verified set, no other one does.
    void check(const FlowList& list) {
        std::size_t mistaken = 0, others = 0;
        for (const FlowPacket& packet : list.packets()) {
            const bool member = list.holds(packet), hit = matches(packet);
            if (member) {
                ASSERT_TRUE(hit) << packet.v4 << " " << packet.source << " " << packet.destination << " "
                                 << packet.port << " " << packet.protocol;
                continue;
            }
            others++;
            mistaken += hit ? 1 : 0;
        }
        if (verified) {
            ASSERT_EQ(mistaken, 0U);
        } else {
            ASSERT_LE(mistaken, 2 + others / 20) << "of " << others;
        }
    }
};

TEST_P(ChangeFlowPrefixes, AtRandomAnswerLikeTheList) {
    std::mt19937_64 random(verified ? 5 : 6);
    FlowList list(fields.form);
    list.add_one_of_each_form();
    while (list.entries.size() < 20) list.entries.insert(list.any(random));
    std::vector<std::string> lines = list.texts();
    lines.push_back(lines.front()); // counts once
    put(lines, 160, {126}, {126});
    ASSERT_NO_FATAL_FAILURE(check(list));
    std::size_t inserted = 0, deleted = 0, full = 0;
    for (int round = 0; round < 300; round++) {
        FlowEntry entry = list.any(random);
        if (list.entries.size() > 25 || random() % 3 == 0) {
            auto other = list.entries.begin();
            std::advance(other, static_cast<std::ptrdiff_t>(random() % list.entries.size()));
            entry = *other;
        }
        const std::string text = entry.text(fields.form);
        const bool in = list.entries.contains(entry);
        if (verified) {
            const auto refused = change(in ? KeyChange::insert : KeyChange::erase, {text});
            ASSERT_TRUE(refused) << refused.error().message;
            ASSERT_EQ(refused->report.told.size(), 1U) << text;
        }
        if (in) {
            const auto out = change(KeyChange::erase, {text});
            ASSERT_TRUE(out) << out.error().message;
            ASSERT_EQ(out->report.done, 1U) << text;
            list.entries.erase(entry);
            deleted++;
        } else {
            const auto come = change(verified ? KeyChange::insert : KeyChange::insert_again, {text});
            ASSERT_TRUE(come) << come.error().message;
            ASSERT_EQ(come->report.done + come->report.full.size(), 1U);
            full += come->report.full.size();
            if (come->report.done == 1) {
                list.entries.insert(entry);
                inserted++;
            }
        }
        ASSERT_NO_FATAL_FAILURE(check(list))
            << "round " << round << ", " << (in ? "without " : "with ") << text;
    }
    EXPECT_GT(inserted, 100U);
    EXPECT_GT(deleted, 100U);
    EXPECT_LT(full, 30U);
    while (!list.entries.empty()) {
        ASSERT_EQ(change(KeyChange::erase, {list.entries.begin()->text(fields.form)})->report.done, 1U);
        list.entries.erase(list.entries.begin());
        ASSERT_NO_FATAL_FAILURE(check(list));
    }
    EXPECT_EQ(stored(), 0U);
    if (verified) {
        EXPECT_TRUE(kernel.keys.at(set().exact_id).notes.empty());
    }
}

struct Death {};

// The controller dies before each of its system calls in turn: no member is ever missed, and what the next
// controller does is right.
TEST_P(ChangeFlowPrefixes, DeathAtEveryStepMissesNoMember) {
    if (!verified) return; // nobody knows what became of a prefix
    std::mt19937_64 random(9);
    FlowList list(fields.form);
    list.add_one_of_each_form();
    put(list.texts(), 256, {126}, {126});
    std::size_t deaths = 0, full = 0;
    for (int round = 0; round < 300; round++) {
        FlowEntry entry = list.any(random);
        if (list.entries.size() > 15 || random() % 3 == 0) {
            auto other = list.entries.begin();
            std::advance(other, static_cast<std::ptrdiff_t>(random() % list.entries.size()));
            entry = *other;
        }
        const std::string text = entry.text(fields.form);
        const bool in = list.entries.contains(entry);
        std::uint64_t steps_to_live = random() % 24;
        kernel.before_each_note([&] {
            if (steps_to_live-- == 0) throw Death{};
        });
        bool died = false, fits = true;
        try {
            const auto done = change(in ? KeyChange::erase : KeyChange::insert, {text});
            ASSERT_TRUE(done) << done.error().message;
            fits = done->report.full.empty();
            ASSERT_EQ(done->report.done, fits ? 1U : 0U) << text;
        } catch (const Death&) {
            died = true;
            deaths++;
        }
        kernel.before_each_note({});
        if (died) { // what it was changing may be in or out: all others are what they were
            FlowList others = list;
            others.entries.erase(entry);
            for (const FlowPacket& packet : list.packets())
                ASSERT_TRUE(!others.holds(packet) || matches(packet));
            const auto sure = change(KeyChange::erase, {text});
            ASSERT_TRUE(sure) << sure.error().message;
        }
        if (!died && !in && fits)
            list.entries.insert(entry);
        else
            list.entries.erase(entry);
        full += fits ? 0 : 1;
        ASSERT_NO_FATAL_FAILURE(check(list)) << "round " << round << " " << text;
    }
    EXPECT_GT(deaths, 50U);
    EXPECT_LT(full, 100U);
    for (const FlowEntry& entry : list.entries)
        ASSERT_EQ(change(KeyChange::erase, {entry.text(fields.form)})->report.done, 1U);
    EXPECT_TRUE(kernel.keys.at(set().exact_id).notes.empty());
}

INSTANTIATE_TEST_SUITE_P(Sets, ChangeFlowPrefixes,
                         testing::Combine(testing::Values(port_of_source, both_addresses), testing::Bool()),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param).name) +
                                    (std::get<1>(info.param) ? "Verified" : "Plain");
                         });

class ChangeCrossingPrefixes : public ChangeFlowPrefixes {};

// Entries that are stored as many keys of one probe, in little room: which of them share keys is found out
// from all entries at once.
TEST_P(ChangeCrossingPrefixes, OfManyStoredKeysShareThem) {
    room = 1500;
    FlowList list(fields.form);
    const auto entry = [](unsigned source, unsigned source_bits, unsigned destination,
                          unsigned destination_bits) {
        return FlowEntry{.v4 = true,
                         .source = FlowHosts{source, source_bits},
                         .destination = FlowHosts{destination, destination_bits},
                         .protocol = 6};
    };
    list.entries = {entry(0, 3, 1, 4), {.v4 = true, .destination = FlowHosts{1, 4}, .protocol = 6}};
    put(list.texts(), 256);
    ASSERT_EQ((*kernel.open_filter(set().map_id))->probes().count[SIEVE_FAMILY_V4], 2U);
    // What grows draws a new seed, so that now and then a line overflows: the set may grow once more.
    const auto insert = [&](const std::vector<std::string>& texts) {
        const auto come = change(KeyChange::insert, texts, {.grow = true});
        kernel.keys.at(set().exact_id).most = room;
        return come->report.done;
    };
    ASSERT_EQ(insert({"2001:db9::1 2001:db8::1 6", "10.9.0.0/23 10.9.0.0 6"}), 2U);
    const std::vector<FlowEntry> coming = {entry(0, 0, 0, 0), entry(8, 1, 0, 0), entry(0, 0, 4, 2),
                                           entry(5, 4, 0, 0), entry(0, 0, 9, 4), entry(4, 2, 8, 1),
                                           entry(0, 1, 0, 2)};
    for (const FlowEntry& one : coming) {
        ASSERT_EQ(insert({one.text(fields.form)}), 1U) << one.text(fields.form);
        list.entries.insert(one);
    }
    ASSERT_NO_FATAL_FAILURE(check(list));
    for (const FlowEntry& one : coming) {
        ASSERT_EQ(change(KeyChange::erase, {one.text(fields.form)})->report.done, 1U);
        list.entries.erase(one);
        ASSERT_NO_FATAL_FAILURE(check(list)) << "without " << one.text(fields.form);
    }
    for (const std::string& text : list.texts()) ASSERT_EQ(change(KeyChange::erase, {text})->report.done, 1U);
    ASSERT_EQ(change(KeyChange::erase, {"2001:db9::1 2001:db8::1 6", "10.9.0.0/23 10.9.0.0 6"})->report.done,
              2U);
    EXPECT_TRUE(kernel.keys.at(set().exact_id).notes.empty());
}

INSTANTIATE_TEST_SUITE_P(Sets, ChangeCrossingPrefixes,
                         testing::Values(std::tuple<Fields, bool>(both_addresses, true)),
                         [](const auto&) { return "Verified"; });

class ChangePortPrefixes : public ChangeFlowPrefixes {};

// A prefix of many stored keys goes in as a whole or not at all. A larger filter keeps the probes.
TEST_P(ChangePortPrefixes, ThatDoNotFitLeaveNothing) {
    put({"10.0.0.0/24 53", "192.0.2.1 443", "192.0.2.0/24 *"}, 60);
    const auto before = stored();
    const auto full = change(KeyChange::insert, {"2001:db8::/118 53"});
    ASSERT_TRUE(full) << full.error().message;
    EXPECT_EQ(full->report.full.size(), 1U);
    EXPECT_EQ(stored(), before);
    EXPECT_FALSE(matches("2001:db8::1 53"));
    EXPECT_TRUE(matches("10.0.0.5 53") && matches("192.0.2.9 7"));
    if (!verified) return;
    const sieve_probes probes = (*kernel.open_filter(set().map_id))->probes();
    const auto grown = change(KeyChange::insert, {"2001:db8::/118 53"}, {.grow = true});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(grown->report.done, 1U);
    EXPECT_GT(grown->grown, 0U);
    const sieve_probes kept = (*kernel.open_filter(set().map_id))->probes();
    EXPECT_EQ(std::memcmp(&probes, &kept, sizeof(probes)), 0);
    for (const char* member : {"2001:db8::3ff 53", "10.0.0.255 53", "192.0.2.1 443", "192.0.2.200 1"})
        EXPECT_TRUE(matches(member)) << member;
    for (const char* other : {"2001:db8::400 53", "2001:db8::1 54", "10.0.0.255 443", "192.0.3.1 443"})
        EXPECT_FALSE(matches(other)) << other;
}

// A set whose entries name other fields has no probe for them, and a prefix may be too short for its probes.
TEST_P(ChangePortPrefixes, WithoutAProbeAreRefusedAndChangeNothing) {
    put({"10.0.0.0/24 53", "192.0.2.0/24 *"}, 200);
    const auto before = stored();
    const auto refused = [&](const std::string& text) {
        expect_error(change(KeyChange::insert, {"10.0.7.0/24 53", text}), ErrorKind::bad_input);
    };
    refused("* 53");
    refused("192.0.2.7 *");
    refused("2001:db8::/64 *");
    refused("2001:db8::/64 53");
    EXPECT_EQ(stored(), before);
    EXPECT_FALSE(matches("10.0.7.1 53"));
}

TEST_P(ChangePortPrefixes, AreListedAndEnd) {
    put({"10.0.0.0/24 53", "192.0.2.1 443", "192.0.2.0/24 *"}, 200);
    ASSERT_EQ(change(KeyChange::insert, {"10.0.0.0/25 53", "10.9.0.0/28 80"}, {.lifetime = 1h})->report.done,
              2U);
    const auto list = list_keys(kernel, eth0, "set");
    ASSERT_TRUE(list) << list.error().message;
    std::set<std::string> texts;
    for (const ListedKey& key : list->keys) texts.insert(listed_key_text(key, *list));
    std::set<std::string> expected{"10.0.0.0/25 53", "10.9.0.0/28 80"};
    if (verified) expected.insert({"10.0.0.0/24 53", "192.0.2.0/24 *", "192.0.2.1 443"});
    EXPECT_EQ(texts, expected);
    EXPECT_EQ(list->unlisted, verified ? 0U : 3U);
    kernel.now += static_cast<std::uint64_t>(std::chrono::nanoseconds(2h).count());
    const auto expired = expire_keys(kernel, {}, {});
    ASSERT_TRUE(expired) << expired.error().message;
    EXPECT_EQ(expired->front().taken_out, 2U);
    EXPECT_FALSE(matches("10.9.0.1 80"));
    EXPECT_TRUE(matches("10.0.0.1 53") && matches("192.0.2.1 1"));
}

INSTANTIATE_TEST_SUITE_P(Sets, ChangePortPrefixes,
                         testing::Combine(testing::Values(port_of_source), testing::Bool()),
                         [](const auto& info) { return std::get<1>(info.param) ? "Verified" : "Plain"; });

} // namespace
} // namespace sieve::control
