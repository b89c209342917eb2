// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/packets/carrier.hpp"

#include <random>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "model/parse_model.hpp"

namespace sieve::packets {
namespace {

using namespace test;

Parsed carried(const sieve_key& key, std::uint32_t fields) {
    Carrier carrier;
    const auto frame = carrier.carry(key, fields);
    return parse_by_model(Bytes(frame.begin(), frame.end()));
}

// The words of the key that the fields select.
std::array<std::uint64_t, 5> selected(const sieve_key& key, std::uint32_t fields) {
    std::array<std::uint64_t, 5> words{};
    if ((fields & SIEVE_FIELD_SRC) != 0) words[0] = key.word[0], words[1] = key.word[1];
    if ((fields & SIEVE_FIELD_DST) != 0) words[2] = key.word[2], words[3] = key.word[3];
    words[4] = key.word[4] & sieve_transport_mask(fields);
    return words;
}

void expect_carried(const sieve_key& key, std::uint32_t fields) {
    const Parsed parsed = carried(key, fields);
    EXPECT_EQ(parsed.have & fields, fields);
    sieve_key seen{};
    std::copy(parsed.key.begin(), parsed.key.end(), seen.word);
    EXPECT_EQ(selected(seen, fields), selected(key, fields)) << format_key(key, fields);
}

TEST(Carrier, CarriesEveryFieldSet) {
    std::mt19937_64 random(1);
    for (std::uint32_t fields = 1; fields <= SIEVE_FIELD_ALL; fields++) {
        for (int i = 0; i < 200; i++) {
            sieve_key key{};
            for (const int at : {0, 2}) {
                const bool v4 = random() % 2 == 0;
                key.word[at] = v4 ? 0 : random();
                key.word[at + 1] = v4 ? sieve_v4_mapped(static_cast<std::uint32_t>(random())) : random();
            }
            static constexpr std::uint8_t protocols[] = {6, 17, 33, 132, 136};
            key.word[4] = sieve_transport_word(static_cast<std::uint16_t>(random()),
                                               static_cast<std::uint16_t>(random()), protocols[random() % 5]);
            expect_carried(key, fields);
        }
    }
}

TEST(Carrier, CarriesProtocolsWithoutPorts) {
    for (unsigned proto = 0; proto < 256; proto++) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(0x0a000001);
        key.word[4] = proto;
        expect_carried(key, SIEVE_FIELD_SRC | SIEVE_FIELD_PROTO);
    }
}

TEST(Carrier, SaysWhatNoPacketCarries) {
    Carrier carrier;
    const auto refused = [&](const std::string& text, const std::string& fields) {
        const std::uint32_t set = *parse_fields(fields);
        // The parser of keys refuses some of these.
        sieve_key key = *parse_key(text.substr(0, text.rfind(' ')), set & ~std::uint32_t{SIEVE_FIELD_PROTO});
        key.word[4] |= parse_key(text.substr(text.rfind(' ') + 1), SIEVE_FIELD_PROTO)->word[4];
        return carrier.carry(key, set).empty();
    };
    EXPECT_TRUE(refused("10.0.0.1 0 icmp", "src,dport,proto"));
    EXPECT_TRUE(refused("10.0.0.1 10.0.0.2 0 0 50", "src,dst,sport,dport,proto"));
    EXPECT_TRUE(refused("2001:db8::1 0", "src,proto"));
    EXPECT_TRUE(refused("2001:db8::1 44", "src,proto"));
    EXPECT_FALSE(refused("2001:db8::1 58", "src,proto"));
    EXPECT_FALSE(refused("10.0.0.1 44", "src,proto"));
    for (const char* upper : {"135", "139", "140"})
        EXPECT_FALSE(refused(std::string("2001:db8::1 ") + upper, "src,proto")) << upper;
}

} // namespace
} // namespace sieve::packets
