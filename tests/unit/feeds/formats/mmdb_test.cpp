// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// MMDB files that somebody has made to do harm. tests/unit/feeds/formats_test.cpp reads right ones.
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/formats/geo.hpp"
#include "unit/messages.hpp"

namespace sieve::formats {
namespace {

std::string big_endian(std::uint64_t number, unsigned bytes) {
    std::string text;
    while (bytes-- > 0) text += static_cast<char>(number >> (8 * bytes));
    return text;
}
std::string text(const std::string& value) {
    return static_cast<char>(0x40 | value.size()) + value;
}
std::string number(std::uint64_t value) {
    return "\xc4" + big_endian(value, 4);
}
std::string map(unsigned size) {
    return {static_cast<char>(0xe0 | size)};
}
std::string german() {
    return map(1) + text("country") + map(1) + text("iso_code") + text("DE");
}

// A file of IPv4 with these nodes, each of two records of 32 bits, and these values.
std::string file(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& nodes,
                 const std::string& values) {
    std::string bytes;
    for (const auto& [left, right] : nodes) bytes += big_endian(left, 4) + big_endian(right, 4);
    return bytes + std::string(16, '\0') + values + "\xab\xcd\xefMaxMind.com" + map(4) + text("node_count") +
           number(nodes.size()) + text("record_size") + number(32) + text("ip_version") + number(4) +
           text("binary_format_major_version") + number(2);
}

Result<std::string> read(const std::string& document) {
    std::string entries;
    GeoContents contents;
    const Status done = translate_geo(
        {ListSyntax::geo, {"DE"}}, {}, document,
        [&](const Place&, Translated, const std::string& one, const entry::Fault&) { entries += one + ";"; },
        contents);
    SIEVE_TRY(done);
    return entries;
}

TEST(Mmdb, OfOneNodeIsRead) {
    EXPECT_EQ(read(file({{1, 1 + 16}}, german())), "128.0.0.0-255.255.255.255;");
    EXPECT_EQ(read(file({}, german())), "");
}

TEST(Mmdb, TreesThatAreNoneAreRefused) {
    expect_error(read(file({{1, 1}, {0, 0}}, german())), ErrorKind::bad_input);
    // One path for each address, though there are 32 nodes only.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> nodes;
    for (std::uint64_t i = 1; i < 32; i++) nodes.emplace_back(i, i);
    nodes.emplace_back(32 + 16, 32 + 16);
    expect_error(read(file(nodes, german())), ErrorKind::bad_input);
    // Deeper than an address.
    nodes.clear();
    for (std::uint64_t i = 1; i < 40; i++) nodes.emplace_back(i, 40);
    nodes.emplace_back(40 + 16, 40);
    expect_error(read(file(nodes, german())), ErrorKind::bad_input);
    expect_error(read(file({{1 + 3, 1}}, german())), ErrorKind::bad_input);
    expect_error(read(file({{1 + 16 + 100, 1}}, german())), ErrorKind::bad_input);
}

TEST(Mmdb, MetadataAreChecked) {
    std::string bytes = file({{1, 1 + 16}}, german());
    const std::size_t size = bytes.find("record_size") + 15; // the last byte of its number
    bytes[size] = 31;
    expect_error(read(bytes), ErrorKind::bad_input);
    bytes[size] = 32;
    bytes[bytes.find("node_count") + 13] = 1;
    expect_error(read(bytes), ErrorKind::bad_input);
    expect_error(read(bytes.substr(0, bytes.find("MaxMind"))), ErrorKind::bad_input);
}

TEST(Mmdb, ValuesThatLeadAstrayAreRefused) {
    const auto of = [](const std::string& values) { return read(file({{1, 1 + 16}}, values)); };
    expect_error(of("\x20" + std::string(1, '\x02') + std::string("\x20\x04") + german()),
                 ErrorKind::bad_input);                                         // a pointer to a pointer
    expect_error(of(std::string("\x20\x00", 2)), ErrorKind::bad_input);         // a pointer to itself
    expect_error(of(std::string("\xff\xff\xff\xff", 4)), ErrorKind::bad_input); // a map of 16 million entries
    expect_error(of(map(1) + "\x5c" + "abc"), ErrorKind::bad_input);    // a text that ends behind the file
    expect_error(of(std::string("\x00\x09", 2)), ErrorKind::bad_input); // a type that there is not
    EXPECT_EQ(of("\x20\x02" + german()), "128.0.0.0-255.255.255.255;") << "a pointer is right";
}

// Skipped without recursion.
TEST(Mmdb, DepthTakesNoStack) {
    std::string deep;
    for (int i = 0; i < 1'000'000; i++) deep += "\x01\x04"; // an array of one
    deep += std::string("\x00\x04", 2);                     // and of none
    EXPECT_EQ(read(file({{1, 1 + 16}}, map(2) + text("a") + deep + german().substr(1))),
              "128.0.0.0-255.255.255.255;");
}

// 60,000 records, each of which is looked for in a map of 60,000 entries.
TEST(Mmdb, TimeIsBounded) {
    constexpr std::uint64_t many = 60'000;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> nodes;
    std::string values;
    for (std::uint64_t i = 0; i < many; i++) {
        nodes.emplace_back(2 * i + 1 < many ? 2 * i + 1 : many + 16 + 5 * i,
                           2 * i + 2 < many ? 2 * i + 2 : many + 16 + 5 * i);
        values += "\x38" + big_endian(5 * many, 4); // a pointer to what follows all of them
    }
    values += "\xfe" + big_endian(many - 285, 2);
    for (std::uint64_t i = 0; i < many; i++) values += text("") + text("");
    expect_error(read(file(nodes, values)), ErrorKind::bad_input);
}

// Whatever becomes of a file, reading it ends, and it reads no byte that is not there (`make sanitize`).
TEST(Mmdb, EveryDamagedByteIsSurvived) {
    for (const char* name : {"countries.mmdb", "both.mmdb"}) {
        std::ifstream in(std::string("tests/data/formats/") + name);
        std::ostringstream all;
        all << in.rdbuf();
        const std::string whole = all.str();
        ASSERT_TRUE(read(whole));
        for (std::size_t i = 0; i < whole.size(); i++) {
            for (const char flip : {'\x01', '\x10', '\x80', '\xff'}) {
                std::string bytes = whole;
                bytes[i] = static_cast<char>(bytes[i] ^ flip);
                (void)read(bytes);
            }
            (void)read(whole.substr(i));
            (void)read(whole.substr(0, i));
        }
    }
}

} // namespace
} // namespace sieve::formats
