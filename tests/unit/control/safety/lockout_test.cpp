// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/lockout.hpp"

#include "libsieve/control/table/replies.hpp"

#include <netinet/in.h>

#include <array>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/spec/find_entry.hpp"
#include "libsieve/control/table/apply.hpp"
#include "libsieve/control/table/edit_table.hpp"
#include "libsieve/control/table/remove.hpp"
#include "libsieve/control/table/swap.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/packets/carrier.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;
using namespace std::chrono_literals;

constexpr std::uint32_t src = SIEVE_FIELD_SRC, dport = SIEVE_FIELD_DPORT, proto = SIEVE_FIELD_PROTO;

uint128 number(const std::string& text) {
    const sieve_key key = parse_key(text, src).value();
    return address_number(key.word[0], key.word[1]);
}

HostAddress address(const std::string& text, HostRole role, const std::string& interface = "eth0") {
    HostAddress made{.address = number(text), .what = "in a test", .role = role, .interface = interface};
    if (role == HostRole::own) made.ours = made.address;
    return made;
}

HostAddress session(const std::string& theirs, const std::string& ours,
                    const std::string& interface = "eth0") {
    HostAddress made = address(theirs, HostRole::session, interface);
    made.ours = number(ours);
    made.our_port = 22;
    made.their_port = 50000;
    return made;
}

class FakeHost final : public HostAddresses {
  public:
    std::vector<HostAddress> addresses;
    Result<std::vector<HostAddress>> read() override { return addresses; }
};

std::vector<std::string> asked(const std::vector<HostAddress>& host, kernel::HookPoint point) {
    std::vector<std::string> texts;
    for (const LockoutQuestion& question : lockout_questions(host, "eth0", point))
        texts.push_back(format_fields(question.known) + " " + format_key(question.key, question.known) +
                        (question.by_default ? " by default" : ""));
    return texts;
}

using Texts = std::vector<std::string>;

TEST(LockoutQuestions, AsksForPacketsFromThemWherePacketsComeIn) {
    const std::vector<HostAddress> host{
        address("192.0.2.1", HostRole::own),          address("198.51.100.1", HostRole::own, "eth1"),
        address("192.0.2.254", HostRole::gateway),    address("198.51.100.254", HostRole::gateway, "eth1"),
        address("192.0.2.53", HostRole::resolver),    address("198.51.100.53", HostRole::resolver, "eth1"),
        session("203.0.113.5", "192.0.2.1"),          session("203.0.113.6", "198.51.100.1", "eth1"),
        address("203.0.113.7", HostRole::listed, ""), address("2001:db8::7", HostRole::listed, "")};
    for (const kernel::HookPoint point : {kernel::HookPoint::xdp, kernel::HookPoint::ingress})
        EXPECT_EQ(asked(host, point),
                  (Texts{"dst 192.0.2.1", "src 192.0.2.1", "src,dst 192.0.2.254 192.0.2.1",
                         "src,sport,proto 192.0.2.53 53 udp by default",
                         "src,dst,sport,dport,proto 203.0.113.5 192.0.2.1 50000 22 tcp by default",
                         "src,dst,sport,dport,proto 203.0.113.6 198.51.100.1 50000 22 tcp",
                         "src,dst 203.0.113.7 192.0.2.1 by default", "src 2001:db8::7 by default"}));
    EXPECT_EQ(asked(host, kernel::HookPoint::egress),
              (Texts{"src 192.0.2.1", "src,dst 192.0.2.1 192.0.2.254",
                     "dst,dport,proto 192.0.2.53 53 udp by default",
                     "src,dst,sport,dport,proto 192.0.2.1 203.0.113.5 22 50000 tcp by default",
                     "src,dst,sport,dport,proto 198.51.100.1 203.0.113.6 22 50000 tcp",
                     "src,dst 192.0.2.1 203.0.113.7 by default", "dst 2001:db8::7 by default"}));
}

TEST(LockoutQuestions, AsksForAnswersOfServers) {
    HostAddress etcd = address("192.0.2.79", HostRole::server);
    etcd.their_port = 2379;
    EXPECT_EQ(asked({etcd}, kernel::HookPoint::xdp), Texts{"src,sport,proto 192.0.2.79 2379 tcp"});
    EXPECT_EQ(asked({etcd}, kernel::HookPoint::egress), Texts{"dst,dport,proto 192.0.2.79 2379 tcp"});
    etcd.interface = "eth1";
    EXPECT_TRUE(asked({etcd}, kernel::HookPoint::xdp).empty());
}

// A table of sets that match or not, and a question whose source address is known.
class FindDropReason : public testing::Test {
  protected:
    std::vector<AskedSet> sets;
    std::vector<bool> matching;
    LockoutQuestion question{.known = src, .by_default = true};
    bool one_port_only = false; // the sets match one port, if they have ports

    void set(sieve_action action, bool matches, std::uint32_t fields = src) {
        sets.push_back({action, fields});
        matching.push_back(matches);
    }
    // The number of the set, "default", or "passes".
    std::string reason(sieve_action default_action = SIEVE_ACTION_PASS) {
        const auto found = find_drop_reason(
            sets, default_action, question, [&](std::size_t i, const sieve_key& key) -> Result<bool> {
                const auto port = static_cast<std::uint16_t>(key.word[4] >> SIEVE_DPORT_SHIFT);
                const bool has_port = (sets[i].fields & dport) != 0;
                return matching[i] && !(one_port_only && has_port && port != 443);
            });
        if (!found.value()) return "passes";
        return (*found)->set ? std::to_string(*(*found)->set) : "default";
    }
};

TEST_F(FindDropReason, TheFirstMatchDecides) {
    EXPECT_EQ(reason(), "passes");
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "default");
    set(SIEVE_ACTION_COUNT, true);
    set(SIEVE_ACTION_DROP, false);
    EXPECT_EQ(reason(), "passes");
    set(SIEVE_ACTION_DROP, true);
    EXPECT_EQ(reason(), "2");
    sets.insert(sets.begin(), {SIEVE_ACTION_PASS, src});
    matching.insert(matching.begin(), true);
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "passes");
}

TEST_F(FindDropReason, LimitsAndRedirectionsTakePackets) {
    for (const sieve_action action :
         {SIEVE_ACTION_LIMIT, SIEVE_ACTION_REDIRECT_DEVICE, SIEVE_ACTION_REDIRECT_CPU}) {
        sets.clear();
        matching.clear();
        set(action, true);
        EXPECT_EQ(reason(), "0");
    }
}

// A set that needs a port says nothing about a packet whose ports are not known.
TEST_F(FindDropReason, WhatCannotBeKnownIsNoReason) {
    one_port_only = true;
    set(SIEVE_ACTION_DROP, true, src | dport);
    EXPECT_EQ(reason(), "passes");
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "default");
    set(SIEVE_ACTION_PASS, true, src | dport);
    set(SIEVE_ACTION_DROP, true);
    EXPECT_EQ(reason(), "passes") << "the second set may let it pass";
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "passes");
    question.by_default = false;
    sets.clear();
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "passes");
}

// A set with a condition says nothing either about a packet whose ports are not known, and what it says of
// others depends on them.
TEST_F(FindDropReason, AConditionCountsAsFarAsItIsKnown) {
    const auto condition = [&](std::size_t i, sieve_part part, const char* values) {
        sets[i].condition = {};
        ASSERT_TRUE(set_condition(sets[i].condition, condition_parts()[part], values));
    };
    set(SIEVE_ACTION_DROP, true);
    condition(0, SIEVE_PART_DPORT, "22");
    EXPECT_EQ(reason(), "passes") << "the port is not known";
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "default");
    question.key.word[4] = sieve_transport_word(50000, 22, IPPROTO_TCP);
    question.known = src | SIEVE_FIELD_TRANSPORT;
    EXPECT_EQ(reason(), "0");
    condition(0, SIEVE_PART_DPORT, "23-65535");
    EXPECT_EQ(reason(), "passes");
    question.known = src;
    condition(0, SIEVE_PART_DPORT, "0-65535");
    EXPECT_EQ(reason(), "0") << "whatever the port is";
    condition(0, SIEVE_PART_PROTO, "udp");
    EXPECT_EQ(reason(), "passes");
    // A set that passes saves what it may match, and nothing that it cannot match.
    sets[0].action = SIEVE_ACTION_PASS;
    condition(0, SIEVE_PART_DPORT, "80");
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "passes");
    matching[0] = false;
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "default") << "it does not hold the address";
    matching[0] = true;
    question.known = src | SIEVE_FIELD_TRANSPORT;
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "default") << "the packet is for another port";
    condition(0, SIEVE_PART_DPORT, "22");
    EXPECT_EQ(reason(SIEVE_ACTION_DROP), "passes");
}

// Unless it matches whatever the port and the protocol are.
TEST_F(FindDropReason, AnOpenFieldNeedNotBeKnown) {
    for (const std::uint32_t fields : {src | dport, src | proto, src | dport | proto}) {
        SCOPED_TRACE(fields);
        sets.clear();
        matching.clear();
        set(SIEVE_ACTION_DROP, true, fields);
        EXPECT_EQ(reason(), "0");
        set(SIEVE_ACTION_DROP, true);
        sets[0].action = SIEVE_ACTION_PASS;
        EXPECT_EQ(reason(), "passes") << "the first set lets it pass for sure";
        sets[0].fields |= SIEVE_FIELD_DST;
        EXPECT_EQ(reason(), "passes") << "an address cannot be made up";
        sets[0].action = SIEVE_ACTION_DROP;
        EXPECT_EQ(reason(), "1");
    }
    sets = {{SIEVE_ACTION_DROP, src | dport | proto}};
    std::set<std::array<__u64, SIEVE_KEY_WORDS>> asked;
    ASSERT_TRUE(find_drop_reason(sets, SIEVE_ACTION_PASS, question,
                                 [&](std::size_t, const sieve_key& key) -> Result<bool> {
                                     EXPECT_FALSE(packets::Carrier().carry(key, sets[0].fields).empty());
                                     asked.insert(std::to_array(key.word));
                                     return true;
                                 })
                    .value());
    EXPECT_EQ(asked.size(), 4U);
}

TEST_F(FindDropReason, AsksWithTheSetsFieldsOnly) {
    question = {.key = parse_key("192.0.2.1 192.0.2.2 1 2 tcp", 31).value(), .known = 31};
    for (const std::uint32_t fields : {1U, 2U, 3U, 5U, 11U, 17U, 31U}) {
        const auto found =
            find_drop_reason(std::vector<AskedSet>{{SIEVE_ACTION_DROP, fields}}, SIEVE_ACTION_PASS, question,
                             [&](std::size_t, const sieve_key& key) -> Result<bool> {
                                 const auto text = format_key(question.key, fields);
                                 const sieve_key wanted = parse_key(text, fields).value();
                                 EXPECT_EQ(std::memcmp(&key, &wanted, sizeof(key)), 0) << text;
                                 return false;
                             });
        EXPECT_TRUE(found);
    }
}

// What control does with it.
class LockedOut : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    FakeHost host;
    Safety safety{.host = &host};
    TableSpec spec{.interface = "eth0", .sets = {}};

    LockedOut() { host.addresses = {session("203.0.113.5", "192.0.2.1")}; }

    SetSpec bad(const std::vector<std::string>& entries) {
        return Files::set("bad", files.feed("bad.txt", entries));
    }
    // The error's message; empty if the table went live.
    std::string load() {
        const auto done = apply(kernel, spec, {}, safety);
        if (done) return {};
        EXPECT_EQ(done.error().kind, ErrorKind::lockout) << done.error().message;
        EXPECT_FALSE(kernel.changed());
        return done.error().message;
    }
    void run(const std::string& name, sieve_action action, const std::vector<std::string>& entries) {
        const kernel::SetInForce& set = kernel.put(name, action);
        kernel.put_filter(set.map_id, Image::load(files.image(name + ".sieve", entries)).value());
    }
};

TEST_F(LockedOut, ALoadIsRefusedWithTheAddressTheSetAndTheLine) {
    spec.sets = {bad({"198.51.100.1", "# comment", "203.0.113.5"})};
    expect_says(load());
    spec.sets = {bad({"198.51.100.1", "203.0.113.0/24"})};
    expect_says(load());
    FeedSpec filter;
    filter.build.kind.kind = SIEVE_KIND_XORSAT;
    spec.sets = {Files::set("bad", files.image("bad.sieve", {"203.0.113.5"}, filter))};
    expect_says(load());
    for (const char* entry : {"203.0.113.5", "203.0.113.0/24"}) {
        spec.sets = {Files::set("bad", files.image("bad.sieve", {entry}))};
        expect_says(load());
    }
    spec.sets = {bad({"198.51.100.1"})};
    EXPECT_EQ(load(), "");
}

// A session is the packets of its ports.
TEST_F(LockedOut, AConditionOnOtherPortsLocksNobodyOut) {
    SetSpec set = bad({"203.0.113.5"});
    const ConditionPart& dport_part = condition_parts()[SIEVE_PART_DPORT];
    ASSERT_TRUE(set_condition(set.condition, dport_part, "22"));
    spec.sets = {set};
    expect_says(load());
    ASSERT_TRUE(set_condition(set.condition, dport_part, "80,443"));
    spec.sets = {set};
    EXPECT_EQ(load(), "");
    // With the set in force, the condition alone changes.
    SetEdit edit;
    ASSERT_TRUE(set_condition(edit.condition.to, dport_part, "1-1023"));
    edit.condition.fields = dport;
    const auto refused = edit_set(kernel, {.interface = "eth0"}, "bad", edit, {}, safety);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::lockout) << refused.error().message;
}

// All of them at once, whatever drops them, and no more than a person reads.
TEST_F(LockedOut, ARefusalNamesEveryAddress) {
    host.addresses.push_back(session("203.0.113.6", "192.0.2.1"));
    spec.sets = {bad({"203.0.113.5", "203.0.113.6"})};
    expect_says(load());
    SetSpec good = Files::set("good", files.feed("good.txt", {"198.51.100.1"}));
    good.action = WantedAction{SIEVE_ACTION_PASS, {}};
    SetSpec drops = bad({"203.0.113.5"});
    drops.action = WantedAction{SIEVE_ACTION_DROP, {}};
    spec.sets = {good, drops};
    spec.default_action = SIEVE_ACTION_DROP;
    expect_says(load());
    for (int i = 10; i < 30; i++)
        host.addresses.push_back(address("203.0.113." + std::to_string(i), HostRole::listed));
    spec.sets = {good};
    expect_says(load());
}

// What answers this host passes where replies do, unless a set keeps them out.
TEST_F(LockedOut, ResolversCountOnReplies) {
    host.addresses = {address("203.0.113.53", HostRole::resolver)};
    SetSpec good = Files::set("good", files.feed("good.txt", {"198.51.100.1"}));
    good.action = WantedAction{SIEVE_ACTION_PASS, {}};
    spec.sets = {good};
    spec.default_action = SIEVE_ACTION_DROP;
    spec.replies = SIEVE_ACTION_DROP;
    expect_says(load());
    spec.replies = SIEVE_ACTION_PASS;
    EXPECT_EQ(load(), "");
    // Without them the answers would be dropped.
    const auto off = edit_replies(kernel, {.interface = "eth0"}, SIEVE_ACTION_DROP, {}, {}, safety);
    ASSERT_FALSE(off);
    EXPECT_EQ(off.error().kind, ErrorKind::lockout);
    EXPECT_EQ(kernel.running.table.replies, SIEVE_ACTION_PASS);
    kernel.steps.clear();
    kernel.running = {};
    SetSpec drops = bad({"203.0.113.53"});
    drops.action = WantedAction{SIEVE_ACTION_DROP, {}};
    spec.sets = {drops};
    spec.default_action = SIEVE_ACTION_PASS;
    EXPECT_EQ(load(), "");
    kernel.steps.clear();
    kernel.running = {};
    spec.sets[0].keeps_replies_out = true;
    expect_says(load());
}

TEST_F(LockedOut, ALeaseNeedsItsServerUnlessRepliesPass) {
    host.addresses = {address("192.0.2.254", HostRole::lease), address("2001:db8::fe", HostRole::lease)};
    const Texts questions = asked(host.addresses, kernel::HookPoint::xdp);
    ASSERT_EQ(questions.size(), 2U);
    EXPECT_NE(questions[0].find("192.0.2.254"), std::string::npos);
    EXPECT_NE(questions[0].find("67 68 udp by default"), std::string::npos) << questions[0];
    EXPECT_NE(questions[1].find("547 546 udp by default"), std::string::npos) << questions[1];
    SetSpec good = Files::set("good", files.feed("good.txt", {"198.51.100.1"}));
    good.action = WantedAction{SIEVE_ACTION_PASS, {}};
    spec.sets = {good};
    spec.default_action = SIEVE_ACTION_DROP;
    spec.replies = SIEVE_ACTION_DROP;
    expect_says(load());
    spec.replies = SIEVE_ACTION_PASS;
    EXPECT_EQ(load(), "");
}

// An entry that holds for every port takes a protected address, though no port of it is known.
TEST_F(LockedOut, AnEntryOfAllPortsIsNoticed) {
    host.addresses = {address("192.0.2.99", HostRole::listed)};
    SetSpec set = bad({"198.51.100.1 443 tcp", "192.0.2.99 * tcp", "192.0.2.98 * *"});
    set.feed.fields = src | dport | proto;
    spec.sets = {set};
    EXPECT_EQ(load(), "");
    kernel.steps.clear();
    kernel.running = {};
    set.sources = {files.feed("bad.txt", {"198.51.100.1 443 tcp", "192.0.2.0/24 * *"})};
    spec.sets = {set};
    expect_says(load());
}

// A filter that is built for the host is built until it matches none of its addresses by a false positive.
TEST_F(LockedOut, AFalsePositiveIsNoLockout) {
    for (int i = 1; i <= 100; i++)
        host.addresses.push_back(address("192.0.2." + std::to_string(i), HostRole::listed));
    std::vector<std::string> entries;
    for (int i = 0; i < 250; i++) entries.push_back("10.1.2." + std::to_string(i));
    SetSpec set = bad(entries);
    set.feed.build.bits_per_key =
        8; // one address in 195: about three loads in five would do without the builder's help
    spec.sets = {set};
    for (int i = 0; i < 8; i++) EXPECT_EQ(load(), "") << i;
}

// Likewise a joint filter, whose answers count for its sets instead of their own filters'.
TEST_F(LockedOut, AFalsePositiveOfAJointFilterIsNoLockout) {
    for (int i = 1; i <= 100; i++)
        host.addresses.push_back(address("192.0.2." + std::to_string(i), HostRole::listed));
    spec.join = true;
    for (const std::string name : {"a", "b"}) {
        std::vector<std::string> entries;
        for (int i = 0; i < 250; i++)
            entries.push_back((name == "a" ? "10.1.2." : "10.1.3.") + std::to_string(i));
        spec.sets.push_back(Files::set(name, files.feed(name + ".txt", entries)));
        spec.sets.back().feed.build.bits_per_key = 8; // one address in 98 for both sets together
    }
    for (int i = 0; i < 8; i++) {
        EXPECT_EQ(load(), "") << i;
        EXPECT_NE(kernel.running.table.joint_id, 0U);
    }
    kernel.steps.clear();
    spec.sets[1] = Files::set("b", files.feed("b.txt", {"10.1.3.1", "203.0.113.5"}));
    expect_says(load());
}

// The joint filter in force names set `a` for the session's address, which the set's own filter does not
// hold.
TEST_F(LockedOut, TheJointFilterInForceIsAsked) {
    run("a", SIEVE_ACTION_COUNT, {"198.51.100.1"});
    run("b", SIEVE_ACTION_DROP, {"198.51.100.2"});
    run("c", SIEVE_ACTION_DROP, {"198.51.100.3"});
    KeySet a(SIEVE_FIELD_SRC), b(SIEVE_FIELD_SRC);
    a.add(parse_key("203.0.113.5", src).value());
    b.add(parse_key("198.51.100.2", src).value());
    const KeySet* const keys[] = {&a, &b};
    kernel.put_joint(JointFilter::build(keys, {.fpr = {}, .bits_per_key = 32, .seed = 1}).value());
    const SetEdit drop{.action = WantedAction{.action = SIEVE_ACTION_DROP, .target = {}, .limit = {}}};
    const auto refused = edit_set(kernel, {.interface = "eth0"}, "a", drop, {}, safety);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::lockout);
    EXPECT_FALSE(kernel.changed());
    // Once only one joined set is left, the sets are asked by themselves.
    EXPECT_TRUE(remove(kernel, {.interface = "eth0"}, "b", {}, safety));
    EXPECT_EQ(kernel.running.table.joint_id, 0U);
    EXPECT_TRUE(edit_set(kernel, {.interface = "eth0"}, "a", drop, {}, safety));
}

TEST_F(LockedOut, NothingIsAskedIfItIsAllowed) {
    spec.sets = {bad({"203.0.113.5"})};
    safety.host = nullptr;
    EXPECT_EQ(load(), "");
    EXPECT_EQ(kernel.count("ask 0"), 0U);
}

TEST_F(LockedOut, AnAllowlistNeedsTheSession) {
    spec.default_action = SIEVE_ACTION_DROP;
    spec.sets = {Files::set("friends", files.feed("friends.txt", {"192.0.2.77"}))};
    expect_says(load());
    spec.sets = {Files::set("friends", files.feed("friends.txt", {"192.0.2.77", "203.0.113.5"}))};
    EXPECT_EQ(load(), "");
}

TEST_F(LockedOut, AFalsePositiveIsCalledOne) {
    SetSpec set = bad({});
    std::vector<std::string> entries;
    for (int i = 0; i < 2000; i++)
        entries.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250));
    set.sources = {files.feed("bad.txt", entries)};
    set.feed.build.bits_per_key = 4; // about one address in eight matches
    set.feed.build.seed = 1;
    spec.sets = {set};
    host.addresses.clear();
    for (std::uint32_t i = 0; i < 2000; i++)
        host.addresses.push_back(
            {.address = number("8.0.0.0") + i, .what = "in a test", .role = HostRole::listed});
    expect_says(load());
}

// What another set already drops, or lets pass first, is no reason to refuse a swap.
TEST_F(LockedOut, ASwapIsJudgedInItsTable) {
    run("friends", SIEVE_ACTION_PASS, {"203.0.113.5"});
    run("bad", SIEVE_ACTION_DROP, {"198.51.100.1"});
    EXPECT_TRUE(swap(kernel, {.interface = "eth0"}, bad({"203.0.113.5"}), {}, safety))
        << "friends are asked first";
    kernel.running.table.sets.erase(kernel.running.table.sets.begin());
    host.addresses.push_back(session("203.0.113.6", "192.0.2.1"));
    const auto refused = swap(kernel, {.interface = "eth0"}, bad({"203.0.113.6"}), {}, safety);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::lockout);
    run("worse", SIEVE_ACTION_DROP, {"203.0.113.6"});
    EXPECT_TRUE(swap(kernel, {.interface = "eth0"}, bad({"198.51.100.1"}), {}, safety))
        << "what was dropped before by another set";
}

TEST_F(LockedOut, RemovingTheSetThatLetsThemPassIsRefused) {
    run("friends", SIEVE_ACTION_PASS, {"203.0.113.5"});
    run("bad", SIEVE_ACTION_DROP, {"203.0.113.5"});
    const auto refused = remove(kernel, {.interface = "eth0"}, "friends", {}, safety);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::lockout);
    EXPECT_EQ(kernel.count("replace"), 0U);
    EXPECT_TRUE(remove(kernel, {.interface = "eth0"}, "bad", {}, safety));
    EXPECT_TRUE(remove(kernel, {.interface = "eth0"}, "friends", {}, safety));
}

TEST_F(LockedOut, KeysThatTakeThePeerOrLetItGoAreRefused) {
    FeedSpec changeable;
    changeable.build.kind.kind = SIEVE_KIND_DDLCBF;
    const auto put = [&](const std::string& name, sieve_action action,
                         const std::vector<std::string>& entries) {
        const kernel::SetInForce& set = kernel.put(name, action);
        kernel.put_filter(set.map_id, Image::load(files.image(name + ".sieve", entries, changeable)).value());
    };
    put("bad", SIEVE_ACTION_DROP, {"198.51.100.1", "198.51.100.2"});
    KeySet keys(src);
    keys.add(parse_key("198.51.100.3", src).value());
    EXPECT_TRUE(insert(kernel, {.interface = "eth0"}, "bad", keys, {}, safety));
    keys.add(parse_key("203.0.113.5", src).value());
    expect_error(insert(kernel, {.interface = "eth0"}, "bad", keys, {}, safety), ErrorKind::lockout);

    kernel.running.table.sets.clear();
    put("friends", SIEVE_ACTION_PASS, {"203.0.113.5", "198.51.100.2"});
    put("bad", SIEVE_ACTION_DROP, {"198.51.100.1", "198.51.100.2"});
    EXPECT_TRUE(insert(kernel, {.interface = "eth0"}, "bad", keys, {}, safety)) << "friends are asked first";
    EXPECT_EQ(erase(kernel, {.interface = "eth0"}, "friends", keys, {}, safety).error().kind,
              ErrorKind::lockout);
    EXPECT_TRUE(erase(kernel, {.interface = "eth0"}, "friends", keys, {}));
}

// While a change is on probation, the table of now may let the peer pass, and the one that comes back drops
// it.
TEST_F(LockedOut, KeysThatTheReturningTableMindsAreRefused) {
    for (const sieve_kind kind : {SIEVE_KIND_EXACT, SIEVE_KIND_DDLCBF}) {
        SCOPED_TRACE(kind);
        FeedSpec changeable;
        changeable.build.kind.kind = kind;
        const auto put = [&](const std::string& name, sieve_action action,
                             const std::vector<std::string>& entries) {
            const kernel::SetInForce& set = kernel.put(name, action);
            kernel.put_filter(set.map_id,
                              Image::load(files.image(name + ".sieve", entries, changeable)).value());
        };
        kernel.running.table = {};
        put("friends", SIEVE_ACTION_PASS, {"203.0.113.5", "198.51.100.2"});
        put("bad", SIEVE_ACTION_DROP, {"198.51.100.1", "198.51.100.2"});
        put("wide", SIEVE_ACTION_DROP, {"203.0.113.5", "198.51.100.9"});
        kernel.running.returning = kernel.running.table;
        kernel.running.table.probation = 60s;
        for (kernel::SetInForce& set : kernel.running.table.sets)
            if (set.action == SIEVE_ACTION_DROP) set.action = SIEVE_ACTION_COUNT;
        KeySet keys(src), harmless(src);
        keys.add(parse_key("203.0.113.5", src).value());
        harmless.add(parse_key("203.0.113.6", src).value());
        expect_error(erase(kernel, {.interface = "eth0"}, "friends", keys, {}, safety), ErrorKind::lockout);
        EXPECT_TRUE(insert(kernel, {.interface = "eth0"}, "bad", keys, {}, safety)) << "friends pass first";
        EXPECT_TRUE(erase(kernel, {.interface = "eth0"}, "bad", keys, {}, safety));
        kernel.running.returning.sets.erase(kernel.running.returning.sets.begin());
        kernel.running.returning.sets.pop_back();
        expect_error(insert(kernel, {.interface = "eth0"}, "bad", keys, {}, safety), ErrorKind::lockout);
        EXPECT_TRUE(insert(kernel, {.interface = "eth0"}, "bad", harmless, {}, safety));
        EXPECT_TRUE(insert(kernel, {.interface = "eth0"}, "wide", keys, {}, safety))
            << "it is not there then";
        EXPECT_TRUE(insert(kernel, {.interface = "eth0"}, "bad", keys, {})) << "it is allowed";
    }
}

// The set begins to drop while a larger table is built for the keys. Nobody else was asked about these.
TEST_F(LockedOut, KeysThatASetGrowsForAreAskedWhenTheyCome) {
    FeedSpec exact;
    exact.build.kind.kind = SIEVE_KIND_EXACT;
    const kernel::SetInForce& set = kernel.put("bad", SIEVE_ACTION_COUNT);
    kernel.put_filter(set.map_id, Image::load(files.image("bad.sieve", {"198.51.100.1"}, exact)).value());
    const std::uint32_t map = set.map_id;
    KeySet keys(src);
    for (int i = 0; i < 250; i++) keys.add(parse_key("198.51.101." + std::to_string(i), src).value());
    keys.add(parse_key("203.0.113.5", src).value());
    kernel.once("test", [&] { kernel.running.table.sets[0].action = SIEVE_ACTION_DROP; });
    expect_error(insert(kernel, {.interface = "eth0"}, "bad", keys, {}, safety), ErrorKind::lockout);
    EXPECT_FALSE(kernel.changed());
    EXPECT_EQ(kernel.running.table.sets[0].map_id, map);
}

// A prefix takes every address in it.
TEST_F(LockedOut, PrefixesThatTakeThePeerAreRefused) {
    FeedSpec changeable;
    changeable.build.kind.kind = SIEVE_KIND_DDLCBF;
    changeable.build.bits_per_key = 200;
    const kernel::SetInForce& set = kernel.put("bad", SIEVE_ACTION_DROP);
    const auto image = files.image("bad.sieve", {"198.51.100.0/24", "192.0.2.1", "192.0.2.2"}, changeable);
    kernel.put_filter(set.map_id, Image::load(image).value());
    const auto inserted = [&](const char* text) {
        Members members(src);
        add_member(parse_member(text, src).value(), members);
        return change_keys(kernel, {.interface = "eth0"}, "bad", members, {}, {}, safety);
    };
    for (const char* text : {"203.0.113.0/24", "203.0.113.5", "203.0.112.0/23", "203.0.113.4-203.0.113.9"}) {
        const auto refused = inserted(text);
        ASSERT_FALSE(refused) << text;
        EXPECT_EQ(refused.error().kind, ErrorKind::lockout) << text;
    }
    for (const char* text : {"203.0.112.0/24", "203.0.113.6", "2001:db8::5"})
        EXPECT_TRUE(inserted(text)) << text;
}

// Likewise among several fields, as far as an entry names what the host knows of its peer.
TEST_F(LockedOut, PrefixesAmongSeveralFieldsThatTakeThePeerAreRefused) {
    constexpr std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;
    FeedSpec changeable;
    changeable.build.kind.kind = SIEVE_KIND_DDLCBF;
    changeable.build.bits_per_key = 200;
    changeable.build.prefixes.lengths[SIEVE_FAMILY_V4] = {119};
    changeable.fields = fields;
    const kernel::SetInForce& set = kernel.put("bad", SIEVE_ACTION_DROP);
    const auto image =
        files.image("bad.sieve",
                    {"198.51.100.0/24 1 udp", "192.0.2.1 22 tcp", "198.51.0.0/25 * tcp", "198.51.1.0/25 * *"},
                    changeable);
    kernel.put_filter(set.map_id, Image::load(image).value());
    const auto inserted = [&](const std::string& text) {
        Members members(fields);
        add_member(parse_member(text, fields).value(), members);
        return change_keys(kernel, {.interface = "eth0"}, "bad", members, {}, {}, safety);
    };
    for (const char* text : {"203.0.113.0/24 22 tcp", "203.0.113.5 22 tcp", "203.0.112.0/23 22 tcp",
                             "203.0.113.4-203.0.113.9 22 tcp", "203.0.113.0/24 * tcp"}) {
        const auto refused = inserted(text);
        ASSERT_FALSE(refused) << text;
        EXPECT_EQ(refused.error().kind, ErrorKind::lockout) << text << ": " << refused.error().message;
    }
    for (const char* text : {"203.0.113.0/24 23 tcp", "203.0.113.0/24 22 udp", "203.0.112.0/24 * tcp"})
        EXPECT_TRUE(inserted(text)) << text;
    // Of a peer whose ports are not known, an entry that names no port still takes every packet.
    host.addresses = {session("203.0.113.5", "192.0.2.1")};
    host.addresses[0].their_port = 0;
    EXPECT_EQ(inserted("203.0.113.0/25 * *").error().kind, ErrorKind::lockout);
}

TEST(FindEntry, NamesTheLine) {
    const Files files;
    const SetSpec set = Files::set("set", files.feed("list", {"; a comment", "", "10.0.0.1,x", " 10.0.0.2",
                                                              "10.1.0.0/16", "10.3.0.1-10.3.0.9"}));
    const auto line = [&](const std::string& text) {
        const auto found = find_entry(set, parse_key(text, src).value());
        return found ? std::stoi(found->substr(found->rfind(':') + 1)) : -1;
    };
    EXPECT_EQ(line("10.0.0.1"), 3);
    EXPECT_EQ(line("10.0.0.2"), 4);
    EXPECT_EQ(line("10.1.255.255"), 5);
    EXPECT_EQ(line("10.3.0.5"), 6);
    EXPECT_EQ(line("10.3.0.10"), -1);
    EXPECT_TRUE(can_find_entries(set));
    const SetSpec several =
        Files::set("several", files.feed("keys", {"10.0.0.1 80 tcp", "10.1.0.0/16 * udp"}));
    SetSpec compound = several;
    compound.feed.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;
    EXPECT_EQ(find_entry(compound, parse_key("10.1.2.3 53 udp", compound.feed.fields).value()),
              several.sources.front() + ":2");
    EXPECT_EQ(find_entry(compound, parse_key("10.1.2.3 53 tcp", compound.feed.fields).value()), std::nullopt);
    EXPECT_FALSE(can_find_entries(Files::set("image", files.image("image", {"10.0.0.1"}))));
    EXPECT_FALSE(can_find_entries(Files::set("gone", files.path("gone"))));
}

} // namespace
} // namespace sieve::control
