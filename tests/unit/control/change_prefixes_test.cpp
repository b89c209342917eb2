// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Prefixes that come and go in a set in force, against an oracle that knows nothing but the list.
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sieve/prefix.h>

#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/control/keys/grow_set.hpp"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/keys/members_of_texts.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;
using test::members_of_texts;
using namespace std::chrono_literals;

// A prefix as a person states it: the length counts the bits of its own family.
struct Prefix {
    bool v4 = true;
    uint128 address = 0; // of 32 or 128 bits
    unsigned length = 0;

    [[nodiscard]] unsigned bits() const { return v4 ? 32 : 128; }
    [[nodiscard]] bool covers(bool other_v4, uint128 other) const {
        return other_v4 == v4 && (length == 0 || (other ^ address) >> (bits() - length) == 0);
    }
    friend auto operator<=>(const Prefix&, const Prefix&) = default;
};

uint128 mapped(bool v4, uint128 address) {
    return v4 ? static_cast<uint128>(SIEVE_V4_MAPPED) | address : address;
}

std::string text_of(bool v4, uint128 address) {
    const uint128 whole = mapped(v4, address);
    return format_address(static_cast<std::uint64_t>(whole >> 64), static_cast<std::uint64_t>(whole));
}

std::string text_of(const Prefix& prefix) {
    return text_of(prefix.v4, prefix.address) + "/" + std::to_string(prefix.length);
}

class List {
  public:
    std::set<Prefix> prefixes;

    [[nodiscard]] bool covers(bool v4, uint128 address) const {
        for (const Prefix& prefix : prefixes)
            if (prefix.covers(v4, address)) return true;
        return false;
    }
};

class ChangePrefixes : public testing::TestWithParam<bool> {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};
    bool verified = false;

    void put(const std::vector<std::string>& lines, double bits_per_key,
             std::uint32_t fields = SIEVE_FIELD_SRC, std::size_t room = 1'000'000) {
        FeedSpec spec;
        spec.build.kind.kind = SIEVE_KIND_DDLCBF;
        spec.build.bits_per_key = bits_per_key;
        spec.build.seed = 3;
        spec.build.prefixes.lengths = {std::vector<std::uint32_t>{112, 120},
                                       std::vector<std::uint32_t>{48, 64}};
        spec.fields = fields;
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
    bool matches(bool v4, uint128 address) {
        const auto filter = kernel.open_filter(set().map_id);
        const sieve_lookup& lookup = (*filter)->lookup();
        const sieve_probes& probes = (*filter)->probes();
        const uint128 whole = mapped(v4, address);
        const auto upper = static_cast<std::uint64_t>(whole >> 64);
        const auto lower = static_cast<std::uint64_t>(whole);
        bool hit = false, exact = set().exact_id == 0;
        for (int i = 0; i < probes.count[v4 ? 0 : 1]; i++) {
            const std::uint32_t length = probes.length[v4 ? 0 : 1][i];
            hit =
                hit || kind_of(lookup).holds(lookup, sieve_hash_prefix(upper, lower, length, lookup.hash_key),
                                             (*filter)->lines().data());
            sieve_key asked;
            sieve_exact_of_prefix(upper, lower, length, &asked);
            exact = exact || kernel.keys.at(set().exact_id).notes.contains(std::to_array(asked.word));
        }
        return hit && exact;
    }
    bool matches(const std::string& text) {
        const sieve_key key = parse_key(text, SIEVE_FIELD_SRC).value();
        const uint128 address = address_number(key.word[0], key.word[1]);
        return is_ipv4(address) ? matches(true, static_cast<std::uint32_t>(address))
                                : matches(false, address);
    }

    Result<KeysChanged> change(KeyChange change, const std::vector<std::string>& texts,
                               KeyRequest request = {}) {
        request.change = change;
        return change_keys(kernel, eth0, "set", members_of_texts(texts), request, {});
    }
    std::uint64_t stored() { return (*kernel.open_filter(set().map_id))->file().keys; }

    // Every address that the list covers matches: the first and the last one of each prefix, and one inside.
    // In a verified set, no other one does.
    void check(const List& list, std::mt19937_64& random) {
        for (const Prefix& prefix : list.prefixes) {
            const uint128 hosts =
                prefix.length == prefix.bits() ? 0 : (~uint128{0} >> (128 - prefix.bits())) >> prefix.length;
            const uint128 inside = hosts == 0 ? 0 : random() % hosts;
            for (const uint128 offset : {uint128{0}, hosts, inside})
                ASSERT_TRUE(matches(prefix.v4, prefix.address + offset)) << text_of(prefix);
            if (!verified) continue;
            for (const uint128 beside : {prefix.address - 1, prefix.address + hosts + 1})
                ASSERT_EQ(matches(prefix.v4, beside), list.covers(prefix.v4, beside))
                    << text_of(prefix.v4, beside);
        }
    }
};

// Nested, equal, neighbouring and disjoint prefixes of both families, and single addresses.
Prefix any_prefix(std::mt19937_64& random, const List& list) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    Prefix prefix;
    prefix.v4 = below(2) == 0;
    if (prefix.v4) {
        constexpr unsigned lengths[] = {12, 14, 15, 16, 19, 21, 22, 23, 24, 28, 29, 30, 31, 32};
        prefix.address = 0x0a000000 | below(1 << 20);
        prefix.length = lengths[below(std::size(lengths))];
    } else {
        constexpr unsigned lengths[] = {42, 44, 47, 48, 56, 60, 63, 64, 120, 124, 126, 127, 128};
        prefix.address = uint128{0x20010db800000000ULL | below(1 << 22) << 14} << 64 | below(512);
        prefix.length = lengths[below(std::size(lengths))];
    }
    if (!list.prefixes.empty() && below(2) == 0) { // in or around another one
        auto other = list.prefixes.begin();
        std::advance(other, static_cast<std::ptrdiff_t>(below(list.prefixes.size())));
        if (other->v4 == prefix.v4) prefix.address = other->address | below(4);
    }
    const unsigned hosts = prefix.bits() - prefix.length;
    prefix.address = prefix.address >> hosts << hosts;
    return prefix;
}

TEST_P(ChangePrefixes, AtRandomAnswerLikeTheList) {
    verified = GetParam();
    std::mt19937_64 random(verified ? 5 : 6);
    List list;
    while (list.prefixes.size() < 60) list.prefixes.insert(any_prefix(random, list));
    std::vector<std::string> lines;
    for (const Prefix& prefix : list.prefixes) lines.push_back(text_of(prefix));
    lines.push_back(lines.front()); // counts once
    put(lines, 120);
    check(list, random);
    std::size_t inserted = 0, deleted = 0, nested = 0, full = 0;
    for (int round = 0; round < 500; round++) {
        // What is in goes out, and what is out comes in. Only the verified set knows; nobody else may be
        // asked twice.
        Prefix prefix = any_prefix(random, list);
        if (random() % 2 == 0 && !list.prefixes.empty()) {
            auto other = list.prefixes.begin();
            std::advance(other, static_cast<std::ptrdiff_t>(random() % list.prefixes.size()));
            prefix = *other;
        }
        const bool in = list.prefixes.contains(prefix);
        if (verified) {
            const auto refused = change(in ? KeyChange::insert : KeyChange::erase, {text_of(prefix)});
            ASSERT_TRUE(refused) << refused.error().message;
            ASSERT_EQ(refused->report.told.size(), 1U) << text_of(prefix);
        }
        if (in) {
            const auto out = change(KeyChange::erase, {text_of(prefix)});
            ASSERT_TRUE(out) << out.error().message;
            ASSERT_EQ(out->report.done, 1U) << text_of(prefix);
            list.prefixes.erase(prefix);
            deleted++;
        } else {
            const bool covered = list.covers(prefix.v4, prefix.address);
            const auto come =
                change(verified ? KeyChange::insert : KeyChange::insert_again, {text_of(prefix)});
            ASSERT_TRUE(come) << come.error().message;
            ASSERT_EQ(come->report.done + come->report.full.size(), 1U);
            full += come->report.full.size();
            if (come->report.done == 1) {
                list.prefixes.insert(prefix);
                inserted++;
                nested += covered ? 1 : 0;
            }
        }
        ASSERT_NO_FATAL_FAILURE(check(list, random)) << "round " << round;
    }
    EXPECT_GT(inserted, 150U);
    EXPECT_GT(deleted, 150U);
    EXPECT_GT(nested, 20U);
    EXPECT_LT(full, 20U);
    while (!list.prefixes.empty()) {
        const Prefix prefix = *list.prefixes.begin();
        ASSERT_EQ(change(KeyChange::erase, {text_of(prefix)})->report.done, 1U) << text_of(prefix);
        list.prefixes.erase(list.prefixes.begin());
        if (list.prefixes.size() % 8 == 0) {
            ASSERT_NO_FATAL_FAILURE(check(list, random));
        }
    }
    EXPECT_EQ(stored(), 0U);
    if (verified) {
        EXPECT_TRUE(kernel.keys.at(set().exact_id).notes.empty());
    }
    for (int i = 0; i < 1000; i++) EXPECT_FALSE(matches(true, 0x0a000000 | (random() & 0xfffff)));
}

// The case that prefixes were refused for.
TEST_P(ChangePrefixes, TheInnerOneOutlivesTheOuterOne) {
    verified = GetParam();
    put({"10.0.0.0/23", "10.0.0.0/24", "10.0.0.7", "192.0.2.1"}, 60);
    ASSERT_EQ(change(KeyChange::erase, {"10.0.0.0/23"})->report.done, 1U);
    EXPECT_FALSE(matches("10.0.1.5"));
    EXPECT_TRUE(matches("10.0.0.5"));
    ASSERT_EQ(change(KeyChange::erase, {"10.0.0.0/24"})->report.done, 1U);
    EXPECT_FALSE(matches("10.0.0.5"));
    EXPECT_TRUE(matches("10.0.0.7"));
    EXPECT_EQ(change(KeyChange::erase, {"10.0.0.0/24"})->report.told.size(), 1U);
    // A range is the prefixes that make it up.
    ASSERT_EQ(change(KeyChange::insert, {"10.0.3.0-10.0.4.255"})->report.done, 2U);
    EXPECT_TRUE(matches("10.0.4.9"));
    ASSERT_EQ(change(KeyChange::erase, {"10.0.3.0/24"})->report.done, 1U);
    EXPECT_FALSE(matches("10.0.3.9"));
    EXPECT_TRUE(matches("10.0.4.9"));
}

TEST_P(ChangePrefixes, TooShortAreRefusedAndChangeNothing) {
    verified = GetParam();
    put({"10.0.0.0/23", "192.0.2.1"}, 60);
    const auto before = stored();
    for (const char* text : {"2001:db8::/31", "2001::/20", "2001:db8:0:0:8000::/65"}) {
        expect_error(change(KeyChange::insert, {"10.0.7.0/24", text}), ErrorKind::bad_input);
    }
    EXPECT_EQ(stored(), before);
    EXPECT_FALSE(matches("10.0.7.1"));
}

// A prefix of many stored keys goes in as a whole or not at all.
TEST_P(ChangePrefixes, ThatDoNotFitLeaveNothing) {
    verified = GetParam();
    put({"10.0.0.0/24", "192.0.2.1"}, 60);
    const auto before = stored();
    const std::size_t exact = verified ? kernel.keys.at(set().exact_id).notes.size() : 0;
    const auto full = change(KeyChange::insert, {"2001:db8::/40", "2001:db9::/40"});
    ASSERT_TRUE(full) << full.error().message;
    EXPECT_EQ(full->report.full.size(), 2U);
    EXPECT_EQ(stored(), before);
    if (verified) {
        EXPECT_EQ(kernel.keys.at(set().exact_id).notes.size(), exact);
    }
    EXPECT_FALSE(matches("2001:db8:1::1"));
    EXPECT_TRUE(matches("10.0.0.5"));
    if (!verified) return;
    const auto grown = change(KeyChange::insert, {"2001:db8::/40", "2001:db9::/40"}, {.grow = true});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(grown->report.done, 2U);
    EXPECT_GT(grown->grown, 0U);
    for (const char* member : {"2001:db8:ff:1::1", "2001:db9::", "10.0.0.255", "192.0.2.1"})
        EXPECT_TRUE(matches(member)) << member;
    EXPECT_FALSE(matches("2001:dba::"));
    const auto filter = kernel.open_filter(set().map_id);
    EXPECT_EQ((*filter)->probes().count[SIEVE_FAMILY_V6], 3U) << "it keeps the lengths that it was built for";
}

TEST_P(ChangePrefixes, End) {
    verified = GetParam();
    put({"10.0.0.0/24", "192.0.2.1"}, 60);
    ASSERT_EQ(change(KeyChange::insert, {"10.1.0.0/22"}, {.lifetime = 1h})->report.done, 1U);
    ASSERT_EQ(change(KeyChange::insert, {"10.1.1.0/24"}, {.lifetime = 3h})->report.done, verified ? 1U : 0U);
    const auto list = list_keys(kernel, eth0, "set");
    ASSERT_TRUE(list) << list.error().message;
    EXPECT_EQ(list->keys.size(), verified ? 4U : 1U);
    EXPECT_EQ(list->unlisted, verified ? 0U : 2U);
    EXPECT_EQ(listed_key_text(list->keys[verified ? 1 : 0], *list), "10.1.0.0/22");
    kernel.now += static_cast<std::uint64_t>(std::chrono::nanoseconds(2h).count());
    const auto expired = expire_keys(kernel, {}, {});
    ASSERT_TRUE(expired) << expired.error().message;
    ASSERT_EQ(expired->size(), 1U);
    EXPECT_EQ(expired->front().taken_out, 1U);
    EXPECT_FALSE(matches("10.1.2.1"));
    EXPECT_EQ(matches("10.1.1.1"), verified);
    EXPECT_TRUE(matches("10.0.0.1"));
}

struct Death {};

// The controller dies before each of its system calls in turn: no member is ever missed, and what the next
// controller does is right.
TEST_P(ChangePrefixes, DeathAtEveryStepMissesNoMember) {
    verified = GetParam();
    std::mt19937_64 random(9);
    List list;
    for (unsigned length = 19; length <= 24; length++) list.prefixes.insert({true, 0x0a000000, length});
    std::vector<std::string> lines;
    for (const Prefix& prefix : list.prefixes) lines.push_back(text_of(prefix));
    put(lines, 200);
    std::size_t deaths = 0, full = 0;
    for (int round = 0; round < 600; round++) {
        Prefix prefix{true, 0x0a000000, static_cast<unsigned>(20 + random() % 13)};
        if (random() % 2 == 0) prefix = {true, 0x0a000400, static_cast<unsigned>(22 + random() % 11)};
        const bool in = list.prefixes.contains(prefix);
        // In a set that is not verified, nobody knows what became of a prefix for good: nothing is noted.
        std::uint64_t steps_to_live = verified ? random() % 12 : ~std::uint64_t{0};
        kernel.before_each_note([&] {
            if (steps_to_live-- == 0) throw Death{};
        });
        const KeyChange what = in ? KeyChange::erase : verified ? KeyChange::insert : KeyChange::insert_again;
        bool died = false, fits = true;
        try {
            const auto done = change(what, {text_of(prefix)});
            ASSERT_TRUE(done) << done.error().message;
            fits = done->report.full.empty();
            ASSERT_EQ(done->report.done, fits ? 1U : 0U) << text_of(prefix);
        } catch (const Death&) {
            died = true;
            deaths++;
        }
        kernel.before_each_note({});
        if (died) { // the next delete makes it sure
            const auto sure = change(KeyChange::erase, {text_of(prefix)});
            ASSERT_TRUE(sure) << sure.error().message;
            list.prefixes.erase(prefix);
        } else if (in) {
            list.prefixes.erase(prefix);
        } else if (fits) {
            list.prefixes.insert(prefix);
        } else {
            full++;
        }
        ASSERT_NO_FATAL_FAILURE(check(list, random)) << "round " << round;
    }
    EXPECT_LT(full, 100U);
    if (verified) {
        EXPECT_GT(deaths, 100U);
    }
    for (const Prefix& prefix : list.prefixes)
        ASSERT_EQ(change(KeyChange::erase, {text_of(prefix)})->report.done, 1U) << text_of(prefix);
    if (verified) {
        EXPECT_TRUE(kernel.keys.at(set().exact_id).notes.empty());
    }
}

INSTANTIATE_TEST_SUITE_P(Sets, ChangePrefixes, testing::Bool(),
                         [](const auto& info) { return info.param ? "Verified" : "Plain"; });

} // namespace
} // namespace sieve::control
