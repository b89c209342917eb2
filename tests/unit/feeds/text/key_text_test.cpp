// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/key_text.hpp"

#include <arpa/inet.h>
#include <endian.h>

#include <array>
#include <cstring>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "unit/messages.hpp"

namespace sieve {
namespace {

constexpr std::uint32_t src = SIEVE_FIELD_SRC;
constexpr std::uint32_t dst = SIEVE_FIELD_DST;
constexpr std::uint32_t sport = SIEVE_FIELD_SPORT;
constexpr std::uint32_t dport = SIEVE_FIELD_DPORT;
constexpr std::uint32_t proto = SIEVE_FIELD_PROTO;
constexpr std::uint32_t all = SIEVE_FIELD_ALL;

bool same(const sieve_key& a, const sieve_key& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

TEST(FieldList, EverySetHasOneListAndBack) {
    EXPECT_EQ(format_fields(all), "src,dst,sport,dport,proto");
    EXPECT_EQ(format_fields(dst), "dst");
    EXPECT_EQ(parse_fields("src,dport").value_or(0), src | dport);
    for (std::uint32_t fields = 1; fields <= all; ++fields)
        EXPECT_EQ(parse_fields(format_fields(fields)).value_or(0), fields) << format_fields(fields);
}

TEST(FieldList, WhatIsNoListIsAUsageError) {
    struct {
        const char* list;
        const char* message;
    } const cases[] = {
        {"", "\"\" is not a field of a key: expected a comma list of src, dst, sport, dport, proto in this "
             "order"},
        {"src,", "\"\" is not a field of a key: "},
        {",src", "\"\" is not a field of a key: "},
        {"src,,dst", "\"\" is not a field of a key: "},
        {"src, dst", "\" dst\" is not a field of a key: "},
        {"SRC", "\"SRC\" is not a field of a key: "},
        {"src,port", "\"port\" is not a field of a key: "},
        {"src,src", "the field src stands twice in \"src,src\""},
        {"src,proto,src", "the field src stands twice in \"src,proto,src\""},
        {"dst,src",
         "\"dst,src\" is out of order: expected a comma list of src, dst, sport, dport, proto in this order"},
        {"src,proto,dport", "\"src,proto,dport\" is out of order: "},
    };
    for (const auto& c : cases) {
        const auto fields = parse_fields(c.list);
        ASSERT_FALSE(fields) << c.list;
        EXPECT_EQ(fields.error().kind, ErrorKind::invalid_request) << c.list;
        EXPECT_EQ(fields.error().message.substr(0, std::strlen(c.message)), c.message);
    }
}

TEST(KeyText, GoodKeys) {
    constexpr std::uint64_t v4 = 0xffff'0102'0304;
    struct {
        std::uint32_t fields;
        const char* text;
        sieve_key key;
    } const cases[] = {
        {src, "1.2.3.4", {{0, v4, 0, 0, 0}}},
        {dst, "1.2.3.4", {{0, 0, 0, v4, 0}}},
        {src, "0.0.0.0", {{0, 0xffff'0000'0000, 0, 0, 0}}},
        {src, "255.255.255.255", {{0, 0xffff'ffff'ffff, 0, 0, 0}}},
        {src, " \t1.2.3.4 ,\t", {{0, v4, 0, 0, 0}}},
        {src, "1.2.3.4/32", {{0, v4, 0, 0, 0}}},
        {src, "1.2.3.4-1.2.3.4", {{0, v4, 0, 0, 0}}},
        {src, "1.2.3.4 - 1.2.3.4", {{0, v4, 0, 0, 0}}},
        {src, "1.2.3.4-::ffff:1.2.3.4", {{0, v4, 0, 0, 0}}},
        {src, "::ffff:1.2.3.4", {{0, v4, 0, 0, 0}}},
        {src, "::FFFF:102:304/128", {{0, v4, 0, 0, 0}}},
        {src, "0:0:0:0:0:ffff:0102:0304", {{0, v4, 0, 0, 0}}},
        {src, "::", {{0, 0, 0, 0, 0}}},
        {src, "2001:DB8::a-2001:db8:0::A", {{0x2001'0db8'0000'0000, 10, 0, 0, 0}}},
        {src, "1:2:3:4:5:6:7::", {{0x0001'0002'0003'0004, 0x0005'0006'0007'0000, 0, 0, 0}}},
        {src, "::2:3:4:5:6:7:8", {{0x0000'0002'0003'0004, 0x0005'0006'0007'0008, 0, 0, 0}}},
        {src, "1:2:3:4:5:6:1.2.3.4", {{0x0001'0002'0003'0004, 0x0005'0006'0102'0304, 0, 0, 0}}},
        {src | dst, "1.2.3.4,::1", {{0, v4, 0, 1, 0}}},
        {src | proto, "1.2.3.4 sctp", {{0, v4, 0, 0, 132}}},
        {sport, "0", {{0, 0, 0, 0, 0}}},
        {sport, "65535", {{0, 0, 0, 0, 0xffffULL << 24}}},
        {dport, "443", {{0, 0, 0, 0, 443ULL << 8}}},
        {proto, "TcP", {{0, 0, 0, 0, 6}}},
        {proto, "255", {{0, 0, 0, 0, 255}}},
        {sport | dport, "1\t,2", {{0, 0, 0, 0, 1ULL << 24 | 2ULL << 8}}},
        {all, "::1 , 1.2.3.4,,1 2\tudp", {{0, 1, 0, v4, 1ULL << 24 | 2ULL << 8 | 17}}},
    };
    for (const auto& c : cases) {
        const auto key = parse_key(c.text, c.fields);
        ASSERT_TRUE(key) << c.text << ": " << key.error().message;
        EXPECT_TRUE(same(*key, c.key)) << c.text << " is " << format_key(*key, all);
    }
}

TEST(KeyText, WhatIsNoAddressIsQuotedWithWhatWasExpected) {
    for (const char* text : {"1.2.3",
                             "1.2.3.",
                             "1.2.3.4.",
                             "1.2.3.4.5",
                             ".1.2.3.4",
                             "1..2.3",
                             "256.1.1.1",
                             "1.1.1.256",
                             "1.2.3.1000",
                             "01.2.3.4",
                             "1.2.3.04",
                             "1.2.3.00",
                             "0x1.2.3.4",
                             "16909060",
                             "+1.2.3.4",
                             "1.2.3.4:80",
                             "example.org",
                             ":",
                             ":::",
                             "1:2",
                             "1:2:3:4:5:6:7",
                             "::1%eth0",
                             "fe80::1%1",
                             "1:2:3:4:5:6:7:8:9",
                             "1:2:3:4:5:6:7:8::",
                             "::1:2:3:4:5:6:7:8",
                             "1::2::3",
                             "::12345",
                             "::g",
                             "1:2:3:4:5:6:7:",
                             ":1:2:3:4:5:6:7",
                             "::1.2.3",
                             "::1.2.3.04",
                             "::1.2.3.4:5",
                             "1:2:3:4:5:6:7:1.2.3.4",
                             "[::1]",
                             "::ffff:1.2.3.4.5",
                             "{}"}) {
        expect_error(parse_key(text, src), ErrorKind::bad_input);
    }
}

TEST(KeyText, EveryOtherFaultSaysWhatItIs) {
    struct {
        std::uint32_t fields;
        const char* text;
    } const cases[] = {
        {src, ""},
        {src, " ,"},
        {src | dport, "1.2.3.4"},
        {src | dport, "1.2.3.4 #443"},
        {src, "1.2.3.4 5.6.7.8"},
        {src, "1.2.3.4 -"},
        {src, "1.2.3.4#x"},
        {sport, "65536"},
        {sport, "4294967296"},
        {sport, "18446744073709551616"},
        {sport, "-1"},
        {sport, "080"},
        {dport, "http"},
        {dport, "80a"},
        {proto, "256"},
        {proto, "06"},
        {proto, "tpc"},
        {src, "10.0.0.0/8"},
        {src, "0.0.0.0/0"},
        {src, "10.0.0.2/31"},
        {src, "2001:db8::/32"},
        {src, "2001:db8::/65"},
        {src, "::/0"},
        {src, "::ffff:1.2.3.0/120"},
        {src, "10.0.0.1-10.0.0.9"},
        {src, "10.0.0.1 - 10.0.0.9"},
        {src, "::-1::"},
        {src, "10.0.0.1/8"},
        {src, "1.2.3.4/0"},
        {src, "2001:db8::1/64"},
        {src, "::ffff:1.2.3.4/120"},
        {src, "1.2.3.4/33"},
        {src, "1.2.3.4/"},
        {src, "1.2.3.4/08"},
        {src, "1.2.3.4/255.0.0.0"},
        {src, "::/129"},
        {src, "1.2.3.4-5"},
        {src, "1.2.3.4-"},
        {src, "1.2.3.4-1.2.3.3"},
        {src, "1.2.3.4-2001::"},
        {src | dst, "1.2.3.0/24 ::1"},
        {src | dst, "1.2.3.4 ::1-::1"},
    };
    for (const auto& c : cases) {
        expect_error(parse_key(c.text, c.fields), ErrorKind::bad_input);
    }
}

// A prefix 0 of IPv6 in v4-mapped space covers more than the mapping, so its network is no IPv4 prefix.
TEST(KeyText, AMappedPrefixShorterThanTheMappingIsIpv6) {
    expect_error(parse_key("::ffff:1.2.3.4/90", src), ErrorKind::bad_input);
}

TEST(KeyText, MessagesAreCleanAndShort) {
    expect_error(parse_key("\x1b[2J\x07\xff\x7f", src), ErrorKind::bad_input);
    expect_error(parse_key(std::string_view("1.2.3.4\0", 8), src), ErrorKind::bad_input);
    const auto long_text = parse_key(std::string(100'000, 'x'), src);
    ASSERT_FALSE(long_text);
    EXPECT_LT(long_text.error().message.size(), 600U);
    expect_error(long_text, ErrorKind::bad_input);
}

TEST(KeyText, FormatsFieldsInTheirOrder) {
    const sieve_key key{{0x2001'0db8'0000'0000, 1, 0, 0xffff'0102'0304, 1024ULL << 24 | 53ULL << 8 | 17}};
    EXPECT_EQ(format_key(key, all), "2001:db8::1 1.2.3.4 1024 53 udp");
    EXPECT_EQ(format_key(key, dst), "1.2.3.4");
    EXPECT_EQ(format_key(key, sport | proto), "1024 udp");
    EXPECT_EQ(format_key(sieve_key{{0, 0, 0, 0, 254}}, proto), "254");
}

// No IPv6 packet has the number of an extension header as its protocol. An IPv4 packet may have it.
TEST(KeyText, AnExtensionHeaderIsNoProtocolOfIpv6) {
    const auto fault = [](std::string_view text, std::uint32_t fields) {
        const auto member = parse_member(text, fields);
        return member ? std::string() : member.error().message;
    };
    for (unsigned number = 0; number < 256; number++) {
        const bool extension =
            number == 0 || number == 43 || number == 44 || number == 51 || number == 60; // not 135, 139, 140
        for (const char* address :
             {"2001:db8::1", "2001:db8::/32", "::/0", "::", "2001:db8::1-2001:db8::9"}) {
            const std::string text = address + (" " + std::to_string(number));
            EXPECT_EQ(fault(text, src | proto)
                              .find("found the protocol " + std::to_string(number) +
                                    " with an IPv6 address") != std::string::npos,
                      extension)
                << text;
        }
        for (const char* address : {"192.0.2.1", "192.0.2.0/24", "::ffff:192.0.2.1", "*", "0.0.0.0/0"})
            EXPECT_EQ(fault(address + (" " + std::to_string(number)), dst | proto), "");
        EXPECT_EQ(fault(std::to_string(number), proto), "");
    }
    EXPECT_NE(fault("192.0.2.1 2001:db8::1 ah", src | dst | proto), "");
    EXPECT_NE(fault("* 2001:db8::1 ah", src | dst | proto), "");
    EXPECT_EQ(fault("* 192.0.2.1 ah", src | dst | proto), "");
    EXPECT_EQ(fault("2001:db8::1 *", src | proto), "");
}

TEST(KeyText, WhatIsFormattedIsReadBack) {
    std::mt19937_64 random(2);
    for (int i = 0; i < 50'000; ++i) {
        const auto fields = static_cast<std::uint32_t>(random() % all + 1);
        auto address = [&](std::uint64_t* words, bool selected) {
            if (!selected) return;
            words[0] = random() % 2 ? 0 : random() & random() & 0xffff'0000'00ff'000f;
            words[1] =
                random() % 2 ? sieve_v4_mapped(static_cast<std::uint32_t>(random())) : random() & random();
        };
        std::array<std::uint64_t, 4> words{};
        address(&words[0], fields & src);
        address(&words[2], fields & dst);
        const sieve_key key{
            {words[0], words[1], words[2], words[3],
             (random() | 64) & sieve_transport_mask(fields)}}; // a protocol from 64 on is no extension header
        const std::string text = format_key(key, fields);
        const auto back = parse_key(text, fields);
        ASSERT_TRUE(back) << text << ": " << back.error().message;
        ASSERT_TRUE(same(*back, key)) << text;
    }
}

// The C library's reading of an address. IPv4 addresses are v4-mapped, so that both families compare.
std::optional<std::array<std::uint64_t, 2>> oracle(const std::string& text) {
    std::array<unsigned char, 16> bytes{};
    if (inet_pton(AF_INET, text.c_str(), bytes.data() + 12) == 1)
        bytes[10] = bytes[11] = 0xff;
    else if (inet_pton(AF_INET6, text.c_str(), bytes.data()) != 1)
        return std::nullopt;
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    return std::array<std::uint64_t, 2>{be64toh(words[0]), be64toh(words[1])};
}

// Compares the reading of `make`'s texts, with up to three changed bytes, with the C library's. There must be
// many good texts and many bad ones.
template <class Make>
void compare_with_oracle(Make make, std::string_view alphabet, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    int good = 0;
    int bad = 0;
    for (int i = 0; i < 150'000; ++i) {
        std::string text = make(random);
        for (auto changes = random() % 4; changes > 0 && !text.empty(); --changes) {
            const std::size_t at = random() % text.size();
            const char c = alphabet[random() % alphabet.size()];
            switch (random() % 4) {
            case 0:
                text.insert(at, 1, c);
                break;
            case 1:
                text.erase(at, 1);
                break;
            case 2:
                text += c;
                break;
            default:
                text[at] = c;
            }
        }
        const auto expected = oracle(text);
        const auto key = parse_key(text, src);
        ++(expected ? good : bad);
        ASSERT_EQ(key.has_value(), expected.has_value()) << '"' << text << '"';
        if (!key) continue;
        ASSERT_EQ(key->word[0], (*expected)[0]) << text;
        ASSERT_EQ(key->word[1], (*expected)[1]) << text;
    }
    EXPECT_GT(good, 30'000);
    EXPECT_GT(bad, 30'000);
}

std::string random_ipv4(std::mt19937_64& random) {
    std::string text;
    for (int i = 0; i < 4; ++i) {
        if (i > 0) text += '.';
        text += std::to_string(random() % (random() % 2 ? 270 : 30));
    }
    return text;
}

std::string random_ipv6(std::mt19937_64& random) {
    const auto groups = static_cast<int>(random() % 4 ? 8 : random() % 10);
    const auto gap =
        static_cast<int>(random() % 2 ? random() % 9 : 99); // where "::" stands, and what it swallows
    const auto swallowed = static_cast<int>(random() % 4);
    std::string text;
    for (int i = 0; i < groups; ++i) {
        if (i == gap) {
            text += i == 0 ? "::" : ":";
            i += swallowed;
            if (i >= groups - 1) break;
            continue;
        }
        char group[8];
        const auto value = static_cast<unsigned>(random() & (random() % 2 ? 0xffff : 0x1f));
        const char* const forms[] = {"%x", "%X", "%04x", "%x"};
        std::snprintf(group, sizeof(group), forms[random() % 4], value);
        text += group;
        if (i < groups - 1) text += ':';
    }
    if (random() % 5 == 0) { // the last two groups as a dotted quad
        for (int cut = 0; cut < 2; ++cut) {
            const std::size_t colon = text.find_last_of(':');
            if (colon == std::string::npos) break;
            text.resize(cut == 0 ? colon : colon + 1);
        }
        text += random_ipv4(random);
    }
    return text;
}

TEST(KeyText, Ipv4AgreesWithTheCLibrary) {
    compare_with_oracle(random_ipv4, "0123456789..xa", 3);
}

TEST(KeyText, Ipv6AgreesWithTheCLibrary) {
    compare_with_oracle(random_ipv6, "0123456789abcdefABCDEF::::..g%", 4);
}

TEST(ParseMember, TakesPrefixesAndOpenFieldsAmongSeveral) {
    constexpr std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;
    const auto range = [](const char* text) { return parse_member(text, fields).value().key_range.value(); };
    const KeyRange prefix = range("192.0.2.0/24,443 tcp ");
    EXPECT_EQ(prefix.fields, fields);
    EXPECT_EQ(prefix.source.last - prefix.source.first, 255U);
    EXPECT_EQ(prefix.transport, sieve_transport_word(0, 443, 6));
    EXPECT_EQ(range("192.0.2.1-192.0.2.9 * udp").fields, fields & ~std::uint32_t{SIEVE_FIELD_DPORT});
    EXPECT_EQ(range("* 53 *").fields, std::uint32_t{SIEVE_FIELD_DPORT});
    EXPECT_FALSE(parse_member("192.0.2.1 443 tcp", fields).value().key_range);
    for (const char* text : {"192.0.2.0/24 443", "192.0.2.0/24 443 tcp 7", "192.0.2.1/24 443 tcp", "* * *",
                             "192.0.2.0/24 * nonsense", "192.0.2.0/33 1 tcp"})
        EXPECT_FALSE(parse_member(text, fields)) << text;
    Members members(fields);
    for (const char* text : {"192.0.2.0/24 443 tcp", "192.0.2.1 443 tcp"})
        add_member(parse_member(text, fields).value(), members);
    EXPECT_EQ(members.keys.size(), 1U);
    EXPECT_EQ(members.key_ranges.size(), 1U);
}

} // namespace
} // namespace sieve
