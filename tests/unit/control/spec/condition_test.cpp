// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/condition.hpp"

#include <random>

#include <gtest/gtest.h>

#include "libsieve/control/spec/set_action.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

const ConditionPart& part_of(const std::string& name) {
    for (const ConditionPart& part : condition_parts())
        if (name == part.name) return part;
    throw std::runtime_error("no part " + name);
}

// "dport=22 proto=tcp"
sieve_condition condition_of(const std::string& text) {
    sieve_condition condition{};
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        const std::string word = text.substr(begin, end - begin);
        const std::size_t equals = word.find('=');
        const Status done =
            set_condition(condition, part_of(word.substr(0, equals)), word.substr(equals + 1));
        EXPECT_TRUE(done) << done.error().message;
        begin = end + 1;
    }
    return condition;
}

std::string said(const std::string& text) {
    return describe_condition(condition_of(text));
}

void refused(const std::string& name, const std::string& text) {
    sieve_condition condition = condition_of("dport=22 sport=53 proto=tcp");
    const sieve_condition before = condition;
    expect_error(set_condition(condition, part_of(name), text), ErrorKind::invalid_request);
    EXPECT_TRUE(condition == before) << "bad input changes nothing";
}

sieve_key packet(unsigned protocol, unsigned sport, unsigned dport) {
    sieve_key key{};
    key.word[4] = sieve_transport_word(static_cast<__u16>(sport), static_cast<__u16>(dport),
                                       static_cast<__u8>(protocol));
    return key;
}

TEST(SetCondition, IsWrittenAsItIsRead) {
    EXPECT_EQ(said(""), "");
    EXPECT_EQ(said("dport=22"), "dport=22");
    EXPECT_EQ(said("proto=tcp sport=1024-65535 dport=22,443"), "dport=22,443,sport=1024-65535,proto=tcp");
    EXPECT_EQ(said("proto=TCP,17,253,icmpv6"), "proto=tcp,udp,icmpv6,253");
    EXPECT_EQ(said("dport=0-65535"), "dport=0-65535") << "all packets that have ports";
    EXPECT_EQ(said("dport=22 dport=any"), "");
    EXPECT_TRUE(condition_of("dport=22 dport=any") == sieve_condition{});
    EXPECT_EQ(describe_action({.action = SIEVE_ACTION_DROP, .condition = condition_of("dport=22,80")}),
              "drop,dport=22,80");
    EXPECT_EQ(
        describe_action(
            {.action = SIEVE_ACTION_DROP, .keeps_replies_out = true, .condition = condition_of("proto=udp")}),
        "drop,proto=udp,replies=drop");
}

TEST(SetCondition, PortsInAnyOrderAreTheSame) {
    EXPECT_EQ(said("dport=443,22,22"), "dport=22,443");
    EXPECT_EQ(said("dport=80,81,82-90"), "dport=80-90");
    EXPECT_EQ(said("dport=5-10,7-8,10-20,30"), "dport=5-20,30");
    EXPECT_EQ(said("dport=0,65535"), "dport=0,65535");
    EXPECT_EQ(said("dport=1,2,3,4,5,6,7,8,9,10"), "dport=1-10") << "more than 8, and one range";
    EXPECT_EQ(said("proto=icmp,igmp"), "proto=icmp,igmp") << "their numbers touch, and that means nothing";
    EXPECT_TRUE(condition_of("dport=443,22") == condition_of("dport=22,443"));
    EXPECT_FALSE(condition_of("dport=443") == condition_of("sport=443"));
    EXPECT_FALSE(condition_of("dport=443") == condition_of("dport=442-443"));
}

TEST(SetCondition, SaysWhatIsWrong) {
    for (const char* wrong : {"", "x", "22-", "-22", "65536", "22 ", " 22", "443-22", "1-2-3", "22,", ",22",
                              "22,,23", "1e3", "0x16", "+22", "ssh", "22,any"})
        refused("dport", wrong);
    for (const char* wrong : {"", "tpc", "256", "-1", "6-17", "tcp,", "any,tcp"}) refused("proto", wrong);
    refused("dport", "1,3,5,7,9,11,13,15,17");
    refused("proto", "1,3,5,7,9,11,13,15,17");
}

TEST(SetCondition, ThatNoPacketMeetsIsRefused) {
    for (const char* right : {"", "dport=22", "proto=icmp", "dport=22 proto=tcp", "sport=1 proto=icmp,udp"})
        EXPECT_TRUE(check_condition(condition_of(right))) << right;
    for (const char* wrong : {"dport=22 proto=icmp", "sport=1 proto=47,58"})
        EXPECT_FALSE(check_condition(condition_of(wrong))) << wrong;
}

TEST(SetCondition, ListsGoOn) {
    for (const char* piece : {"22", "8000-8100", "6"}) EXPECT_TRUE(continues_list(part_of("proto"), piece));
    for (const char* piece : {"22", "8000-8100"}) EXPECT_TRUE(continues_list(part_of("dport"), piece));
    EXPECT_TRUE(continues_list(part_of("proto"), "udp"));
    for (const char* piece : {"", "udp", "action=drop", "verify"})
        EXPECT_FALSE(continues_list(part_of("dport"), piece)) << piece;
}

// All ports, against the numbers themselves.
TEST(SetCondition, IsMetByThesePacketsOnly) {
    const sieve_condition condition = condition_of("dport=22,100-200,65535 proto=tcp,udp");
    for (unsigned port = 0; port <= 65535; port++) {
        const bool holds = port == 22 || (port >= 100 && port <= 200) || port == 65535;
        for (const unsigned protocol : {6U, 17U, 132U}) {
            const sieve_key key = packet(protocol, 9, port);
            EXPECT_EQ(sieve_condition_met(&condition, key.word[4], SIEVE_FIELD_ALL),
                      holds && protocol != 132);
            EXPECT_EQ(is_met(condition, key, SIEVE_FIELD_ALL) == Met::yes, holds && protocol != 132);
        }
    }
    const sieve_condition from = condition_of("sport=53");
    EXPECT_TRUE(sieve_condition_met(&from, packet(17, 53, 1).word[4], SIEVE_FIELD_ALL));
    EXPECT_FALSE(sieve_condition_met(&from, packet(17, 1, 53).word[4], SIEVE_FIELD_ALL));
    // A packet that lacks the field: the numbers in the key mean nothing.
    EXPECT_FALSE(
        sieve_condition_met(&from, packet(17, 53, 1).word[4], SIEVE_FIELD_ADDRESSES | SIEVE_FIELD_PROTO));
    const sieve_condition none{};
    EXPECT_TRUE(sieve_condition_met(&none, 0, 0));
}

TEST(SetCondition, DependsOnWhatIsNotKnown) {
    constexpr std::uint32_t dport = SIEVE_FIELD_DPORT, proto = SIEVE_FIELD_PROTO;
    const sieve_condition condition = condition_of("dport=22 proto=tcp");
    EXPECT_EQ(is_met(condition, packet(0, 0, 0), 0), Met::depends);
    EXPECT_EQ(is_met(condition, packet(0, 0, 22), dport), Met::depends);
    EXPECT_EQ(is_met(condition, packet(0, 0, 23), dport), Met::no);
    EXPECT_EQ(is_met(condition, packet(6, 0, 0), proto), Met::depends);
    EXPECT_EQ(is_met(condition, packet(17, 0, 0), proto), Met::no);
    EXPECT_EQ(is_met(condition, packet(6, 0, 22), dport | proto), Met::yes);
    EXPECT_EQ(is_met(condition_of("dport=22"), packet(1, 0, 0), proto), Met::no) << "ICMP has no ports";
    EXPECT_EQ(is_met({}, packet(0, 0, 0), 0), Met::yes);
}

TEST(SetCondition, ChangesFieldByField) {
    const sieve_condition before = condition_of("dport=22 proto=tcp");
    const auto change = [&](std::uint32_t fields, const std::string& to) {
        return describe_condition(edited(before, {.fields = fields, .to = condition_of(to)}));
    };
    EXPECT_EQ(change(0, ""), "dport=22,proto=tcp");
    EXPECT_EQ(change(SIEVE_FIELD_DPORT, "dport=80,443"), "dport=80,443,proto=tcp");
    EXPECT_EQ(change(SIEVE_FIELD_DPORT, ""), "proto=tcp");
    EXPECT_EQ(change(SIEVE_FIELD_SPORT | SIEVE_FIELD_PROTO, "sport=1"), "dport=22,sport=1");
    EXPECT_TRUE(edited(before, {.fields = SIEVE_FIELD_ALL, .to = {}}) == sieve_condition{});
}

} // namespace
} // namespace sieve::control
