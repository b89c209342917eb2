// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists in the formats in which they are published: what they mean, what is decided by their first lines, and
// what is refused.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsieve/feeds/detect_format.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/feeds/text/list_format.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

constexpr std::uint32_t src = SIEVE_FIELD_SRC;
constexpr std::uint32_t endpoint = SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;
constexpr std::uint32_t service = SIEVE_FIELD_DST | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;

ListFormat format_of(const std::string& text) {
    return parse_list_format(text).value();
}

Result<Feed> read_text(const std::string& text, std::uint32_t fields = src,
                       const std::string& format = "auto", bool skip = false) {
    UniqueFd fd(::memfd_create("list", MFD_CLOEXEC));
    EXPECT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::lseek(fd.get(), 0, SEEK_SET);
    std::vector<Input> inputs;
    inputs.push_back(Input::of(std::move(fd), "list").value());
    return read_feed(inputs, fields, {.format = format_of(format), .skip_invalid = skip, .ranges = true});
}

std::string sample(const std::string& name) {
    std::ifstream file("tests/data/formats/" + name);
    EXPECT_TRUE(file) << name;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// All entries, keys first: "a; b-c".
std::string text_of(const Result<Feed>& feed) {
    if (!feed) return "error: " + feed.error().message;
    std::string text;
    const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
    for (std::size_t i = 0; i < feed->keys.size(); i++)
        add(format_key(feed->keys.at(i), feed->keys.fields()));
    const auto address = [](uint128 number) {
        return format_address(static_cast<std::uint64_t>(number >> 64), static_cast<std::uint64_t>(number));
    };
    for (const AddressRange& range : feed->ranges) add(address(range.first) + "-" + address(range.last));
    return text;
}

struct Sample {
    const char* file;
    const char* decided; // what "auto" says; null: nothing, it is plain
    std::uint32_t fields;
    const char* format;
    const char* entries;
};

class Samples : public testing::TestWithParam<Sample> {};

TEST_P(Samples, AreReadRight) {
    const Sample& one = GetParam();
    const Result<Feed> feed = read_text(sample(one.file), one.fields, one.format);
    EXPECT_EQ(text_of(feed), one.entries);
    if (!feed) return;
    EXPECT_EQ(feed->lines, feed->comments + feed->keys.size() + feed->ranges.size());
    if (one.decided == nullptr) {
        EXPECT_TRUE(feed->decided.empty());
    } else {
        ASSERT_EQ(feed->decided.size(), 1U);
        EXPECT_EQ(feed->decided[0], std::string("list: read as ") + one.decided);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Samples,
    testing::Values(
        Sample{"dshield.txt", "DShield blocks (format dshield)", src, "auto",
               "192.0.2.0-192.0.2.255; 198.51.100.0-198.51.100.255; 203.0.113.128-203.0.113.255"},
        Sample{"hosts.txt",
               "a hosts file (format hosts), without 7 lines whose address leads nowhere, such as 0.0.0.0",
               src, "auto", "192.0.2.10; 2001:db8::10"},
        Sample{"ipset.txt", "`ipset save` (format ipset), without 1 timeout", src, "auto",
               "192.0.2.1; 198.51.100.0-198.51.100.255; 203.0.113.4-203.0.113.9"},
        Sample{"ipset-ports.txt", "`ipset save` (format ipset)", service, "auto",
               "192.0.2.1 443 tcp; 192.0.2.1 53 udp; 198.51.100.7 8080 tcp"},
        Sample{"ipset-two.txt", nullptr, src, "ipset:good", "192.0.2.2; 192.0.2.3"},
        Sample{"nft.txt", "an nftables set (format nft), without 1 timeout", src, "auto",
               "192.0.2.1; 203.0.113.7; 192.0.2.64-192.0.2.127; 198.51.100.4-198.51.100.9"},
        Sample{"nft-ports.txt", "an nftables set (format nft)", service, "auto",
               "192.0.2.1 443 tcp; 192.0.2.2 53 udp; 198.51.100.7 8080 tcp"},
        Sample{"nft.json", "a JSON document (format json)", src, "auto",
               "192.0.2.1; 203.0.113.7; 192.0.2.64-192.0.2.127; 198.51.100.4-198.51.100.9"},
        Sample{"aws.json", "a JSON document (format json)", src, "auto",
               "192.0.2.0-192.0.2.127; 198.51.100.128-198.51.100.255; "
               "2001:db8:1::-2001:db8:1:ffff:ffff:ffff:ffff:ffff"},
        Sample{"google.json", "a JSON document (format json)", src, "auto",
               "192.0.2.0-192.0.2.255; 2001:db8:2::-2001:db8:2:0:ffff:ffff:ffff:ffff"},
        Sample{"cloudflare.json", "a JSON document (format json)", src, "auto",
               "192.0.2.0-192.0.2.255; 198.51.100.0-198.51.103.255; "
               "2001:db8:3::-2001:db8:3:ffff:ffff:ffff:ffff:ffff"},
        Sample{"array.json", "a JSON document (format json)", src, "auto",
               "192.0.2.1; 2001:db8::1; 198.51.100.0-198.51.100.255"},
        Sample{"unknown.json", nullptr, src, "json:hooks", "192.0.2.0-192.0.2.255"},
        Sample{"abusech.csv", "columns with a header (format csv), column 2 (\"DstIP\")", src, "auto",
               "192.0.2.1; 198.51.100.7"},
        Sample{"abusech.csv", nullptr, endpoint, "csv:dstip+DstPort", "192.0.2.1 443; 198.51.100.7 8080"},
        Sample{"feodo.csv", "columns with a header (format csv), column 2 (\"dst_ip\")", src, "auto",
               "192.0.2.9; 192.0.2.10"},
        Sample{"feodo.csv", nullptr, endpoint, "csv:2+3", "192.0.2.9 443; 192.0.2.10 8080"},
        Sample{"crowdsec.csv", "columns with a header (format csv), column 3 (\"ip\")", src, "auto",
               "192.0.2.33; 198.51.100.0-198.51.100.255"},
        Sample{"two-addresses.csv", nullptr, src, "csv:src_ip", "192.0.2.1; 192.0.2.2"},
        Sample{"peerguardian.p2p", "labelled ranges (P2P, eMule) (format p2p)", src, "auto",
               "198.51.100.7; 192.0.2.0-192.0.2.127"},
        Sample{"ipfilter.dat",
               "labelled ranges (P2P, eMule) (format p2p), without 1 line of an access level of 128 or more, "
               "which eMule lets through",
               src, "auto", "198.51.100.7; 192.0.2.0-192.0.2.127"},
        Sample{"netmasks.txt", nullptr, src, "auto",
               "203.0.113.9; 192.0.2.0-192.0.2.255; 198.51.100.128-198.51.100.255"},
        Sample{"firehol.netset", nullptr, src, "auto",
               "192.0.2.200; 192.0.2.0-192.0.2.127; 198.51.100.0-198.51.100.255; 203.0.113.64-203.0.113.127"},
        Sample{"spamhaus.txt", nullptr, src, "auto",
               "192.0.2.0-192.0.2.255; 198.51.100.0-198.51.100.127; "
               "2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
        Sample{"delegated.txt", "delegations of ripencc of 20260102", src, "geo:DE",
               "198.51.100.7; 192.0.2.0-192.0.2.95; 2001:db8::-2001:db8:7fff:ffff:ffff:ffff:ffff:ffff"},
        Sample{"delegated.txt", "delegations of ripencc of 20260102", src, "geo:fr+AT",
               "192.0.2.128-192.0.2.255; "
               "2001:db8:8000::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
        Sample{"countries.csv", nullptr, src, "geo:DE",
               "203.0.113.7; 192.0.2.0-192.0.2.95; 2001:db8::-2001:db8:7fff:ffff:ffff:ffff:ffff:ffff"},
        Sample{"networks.csv", nullptr, src, "geo:AS64500",
               "192.0.2.0-192.0.2.127; 2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
        Sample{"both.tsv", nullptr, src, "geo:AS64501", "198.51.100.0-198.51.100.255"},
        Sample{"both.tsv", nullptr, src, "geo:AT+DE", "192.0.2.0-192.0.2.95; 198.51.100.0-198.51.100.255"},
        Sample{
            "countries.mmdb", "GeoLite2-Country of 2026-01-02", src, "geo:DE",
            "2001:db8::-2001:db8:7fff:ffff:ffff:ffff:ffff:ffff; 192.0.2.0-192.0.2.63; 192.0.2.64-192.0.2.95"},
        Sample{"networks.mmdb", "GeoLite2-ASN of 2026-01-02", src, "geo:as64500",
               "2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff; 192.0.2.0-192.0.2.127"},
        Sample{"both.mmdb", "ipinfo of 2026-01-02", src, "geo:AT", "192.0.2.128-192.0.2.255"},
        Sample{"both.mmdb", "ipinfo of 2026-01-02", src, "geo:AS64500", "192.0.2.0-192.0.2.63"},
        Sample{"ports.txt", nullptr, endpoint, "auto", "192.0.2.1 443; 2001:db8::1 53; 198.51.100.7 8080"}),
    [](const auto& info) {
        std::string name = std::string(info.param.file) + "_" + std::to_string(info.index);
        for (char& c : name)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
        return name;
    });

TEST(Formats, WhatIsAmbiguousOrSenselessIsRefused) {
    const struct {
        std::string text;
        std::uint32_t fields;
        const char* format;
    } cases[] = {
        // The traps: lists that are not what their first column says.
        {"192.0.2.0\t192.0.2.255\t24\n", src, "plain"},
        {sample("hosts-names.txt"), src, "auto"},
        {"127.0.0.1 x\n192.0.2.1 192.0.2.2\n", src, "auto"},
        {"192.0.2.1 note\n192.0.2.2, 192.0.2.3\n", src, "auto"},
        // Behind a carriage return, too.
        {"192.0.2.1,192.0.2.3\r\n192.0.2.4\r\n", src, "auto"},
        {"192.0.2.1 443 2001:db8::/32\n", endpoint, "auto"},
        {"192.0.2.0\t192.0.2.255\t25\n", src, "dshield"},
        {"192.0.2.1\t192.0.3.0\t24\n", src, "dshield"},
        {"192.0.2.1 # no name\n", src, "hosts"},
        {sample("ipset-two.txt"), src, "auto"},
        {"add bad 192.0.2.1 nomatch\n", src, "auto"},
        {sample("ipset-ports.txt"), src, "auto"},
        {sample("ipset-ports.txt"), endpoint, "auto"},
        {"table ip t {\n set a {\n elements = { 192.0.2.1 }\n }\n set b {\n elements = { 192.0.2.2 }\n "
         "}\n}\n",
         src, "auto"},
        {"set a { elements = { 192.0.2.1,\n", src, "nft"},
        {"map a { elements = {\n192.0.2.1 : drop } }\n", src, "nft"},
        {sample("unknown.json"), src, "auto"},
        {"{\"ip\": [\"192.0.2.1\",\n", src, "auto"},
        {"[\"192.0.2.1\", \"nonsense\"]", src, "auto"},
        {sample("two-addresses.csv"), src, "auto"},
        {sample("two-addresses.csv"), src, "csv:nope"},
        {sample("two-addresses.csv"), src, "csv:4"},
        {"ip,note,IP\n192.0.2.1,x,192.0.2.2\n", src, "csv:ip"},
        {sample("feodo.csv"), endpoint, "auto"},
        {"ip,port\n192.0.2.1,80\n192.0.2.2\n", endpoint, "csv:ip+port"},
        {"ip,port\n192.0.2.1,\n", endpoint, "csv:ip+port"},
        {"ip,why\n192.0.2.1,\"no end\n", src, "csv:ip"},
        {"192.0.2.0 - 192.0.2.9 , x , y\n", src, "p2p"},
        {"2001:db8:1:2::1-2001:db8:1:2::f\n", src, "p2p"},
        {"192.0.2.0/255.0.255.0\n", src, "auto"},
        {"192.0.2.7/255.255.255.0\n", src, "auto"},
        {"192.0.2.1:443\n", src, "auto"},
    };
    for (const auto& one : cases)
        expect_error(read_text(one.text, one.fields, one.format), ErrorKind::bad_input);
}

// A list has no ends: what was there for a time is told of, however the format was chosen.
TEST(Formats, TimeoutsThatAreNotKeptAreTold) {
    const auto told = [](const char* text, const char* format) {
        const Result<Feed> feed = read_text(text, src, format);
        return feed && !feed->decided.empty() ? feed->decided[0] : std::string();
    };
    const char* const ipset =
        "create a hash:ip timeout 300\nadd a 192.0.2.1 timeout 299\nadd a 192.0.2.2 timeout 0\n"
        "add a 192.0.2.3 comment \"timeout 9\"\nadd a 192.0.2.0/25 timeout 7\nadd b 192.0.2.9 "
        "timeout 1\n";
    EXPECT_EQ(told(ipset, "ipset:a"), "list: read as `ipset save` (format ipset), without 2 timeouts");
    EXPECT_EQ(told("add a 192.0.2.1 timeout 0\n", "ipset:a"), "");
    EXPECT_EQ(told("set s { elements = { 192.0.2.1 expires 5s, 192.0.2.2 comment \"timeout\", 192.0.2.3 } }",
                   "nft:s"),
              "list: read as an nftables set (format nft), without 1 timeout");
}

// What operators have in their files besides the samples.
TEST(Formats, OddListsAreReadRight) {
    const std::string mark = "\xef\xbb\xbf";
    const struct {
        std::string text;
        std::uint32_t fields;
        const char* format;
        const char* entries;
    } cases[] = {
        // A byte order mark, as spreadsheets write it, before each format.
        {mark + "ip,why\r\n192.0.2.1,\"a, b\"\r\n\"192.0.2.2\",\"say \"\"no\"\"\"\r\n", src, "auto",
         "192.0.2.1; 192.0.2.2"},
        {mark + "ip,why\n192.0.2.1,x\n", src, "csv:ip", "192.0.2.1"},
        {mark + "add bad 192.0.2.1\n", src, "auto", "192.0.2.1"},
        {mark + "{\"prefixes\": [{\"ip_prefix\": \"192.0.2.0/24\"}]}", src, "auto", "192.0.2.0-192.0.2.255"},
        {mark + "192.0.2.1\r\n", src, "auto", "192.0.2.1"},
        // A comment may say what it likes, if no address stands directly behind its semicolon.
        {"192.0.2.1 ; was 192.0.2.9\n192.0.2.2 # 192.0.2.8;192.0.2.9\n;192.0.2.7\n192.0.2.3;SBL7; "
         "192.0.2.9\n",
         src, "auto", "192.0.2.1; 192.0.2.2; 192.0.2.3"},
        // Blanks around the slash, and a path.
        {"192.0.2.0 /24\n198.51.100.0\t/ 255.255.255.128 # x\n2001:db8:: / 32\n192.0.2.9 /24h\n", src, "auto",
         "192.0.2.9; 192.0.2.0-192.0.2.255; 198.51.100.0-198.51.100.127; "
         "2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
        // Separated by semicolons, tabs and bars.
        {"ip;score\n192.0.2.1;0,5\n", src, "auto", "192.0.2.1"},
        {"when\tip\n2026-11-22 10:00:00\t192.0.2.1\n", src, "auto", "192.0.2.1"},
        {"AS1|192.0.2.0/24|XX\n", src, "auto", "192.0.2.0-192.0.2.255"},
        // Options of ipset's entries; a set whose entries are networks.
        {"create bad hash:ip family inet hashsize 1024 maxelem 65536 timeout 0 comment\n"
         "add bad 192.0.2.1 timeout 3600 packets 1 bytes 2 comment \"a nomatch 192.0.2.9\"\n",
         src, "auto", "192.0.2.1"},
        {"create bad hash:ip family inet netmask 24\ncreate ok hash:ip\nadd bad 192.0.2.0\nadd bad "
         "198.51.100.0/25\nadd ok 203.0.113.9\n",
         src, "ipset:bad", "192.0.2.0-192.0.2.255; 198.51.100.0-198.51.100.127"},
        {"create bad hash:ip netmask 24\ncreate ok hash:ip\nadd ok 203.0.113.9\n", src, "auto",
         "203.0.113.9"},
        {"create bad hash:ip,port netmask 64 family inet6\nadd bad 2001:db8::1,tcp:80\n", src, "ipset:other",
         "error: "},
        {"add bad 2001:db8::1\nadd bad 2001:db8:1::/64\n", src, "auto",
         "2001:db8::1; 2001:db8:1::-2001:db8:1:0:ffff:ffff:ffff:ffff"},
        // Quotations hide delimiters and hold doubled quotes.
        {"\"x;y;z\",192.0.2.1\n", src, "csv", "192.0.2.1"},
        {"\"an \"\"ip\"\"\",n\n192.0.2.1,x\n", src, "csv:an \"ip\"", "192.0.2.1"},
        // nft: intervals, lifetimes, counters, comments; a script that empties the set first.
        {"flush set inet filter bad\nadd element inet filter bad { 192.0.2.1 timeout 1h expires 59m59s,\n"
         "  192.0.2.8/29 counter packets 1 bytes 2 comment \"a, } 192.0.2.9\", 198.51.100.1-198.51.100.3, }\n"
         "flush set inet filter other\nflush chain inet filter input\n",
         src, "auto", "192.0.2.1; 192.0.2.8-192.0.2.15; 198.51.100.1-198.51.100.3"},
        {"delete element ip t other { 192.0.2.1 }\nadd element ip t bad { 192.0.2.2 }\n", src, "nft:bad",
         "192.0.2.2"},
        // What takes nothing out: other sets, what comes before all elements, and rules.
        {"add table ip t\ndelete table ip t\nadd element ip t bad { 192.0.2.1 }\nflush table ip t\n"
         "delete set ip t other\ndelete chain ip t c\ndestroy map ip t m\nadd element ip t bad { 192.0.2.2 "
         "}\n",
         src, "auto", "192.0.2.1; 192.0.2.2"},
        {"add set ip t bad { elements = { 192.0.2.1 } }\nadd element ip t bad { 192.0.2.2 }\n", src,
         "nft:bad", "192.0.2.1; 192.0.2.2"},
        // Lists with names, and who uses them.
        {"define evil = { 192.0.2.1 }\nset bad { type ipv4_addr; elements = $evil }\n"
         "add element ip t bad $evil\n",
         src, "auto", "192.0.2.1"},
        {"define bad = { 192.0.2.1 }\nset bad { elements = $bad }\nset good { elements = $none }\n", src,
         "nft:bad", "192.0.2.1"},
        {"define x = { 192.0.2.1 }\nflush set inet f b\nadd element inet f b $x\nflush set inet f x\n"
         "flush set inet g b\ndelete table inet g\n",
         src, "auto", "192.0.2.1"},
        // ipset: the set is emptied first, or another one is.
        {"create bad hash:ip\nflush bad\nflush\nadd bad 192.0.2.1\nflush other\nadd bad 192.0.2.2\n", src,
         "auto", "192.0.2.1; 192.0.2.2"},
        {"add other 192.0.2.1\nflush bad\nadd bad 192.0.2.2\n", src, "ipset:bad", "192.0.2.2"},
        // The commands of `nft -j`.
        {"{\"nftables\": [{\"delete\": {\"element\": {\"name\": \"bad\", \"elem\": [\"192.0.2.9\"]}}},\n"
         "{\"flush\": {\"ruleset\": null}},\n"
         "{\"add\": {\"element\": {\"name\": \"bad\", \"elem\": [\"192.0.2.1\"]}}},\n"
         "{\"flush\": {\"set\": {\"name\": \"other\"}}}, {\"flush\": {\"table\": {\"name\": \"t\"}}},\n"
         "{\"delete\": {\"element\": {\"name\": \"other\", \"elem\": [\"192.0.2.9\"]}}}]}",
         src, "auto", "192.0.2.1"},
        // Labels with colons and commas; mixed case; several names of a host.
        {"A: b, c: d:192.0.2.1-192.0.2.2\nnet:2001:DB8::1-2001:db8::F\n", src, "p2p",
         "192.0.2.1-192.0.2.2; 2001:db8::1-2001:db8::f"},
        // A range whose end, from behind its first colon on, is a range as well: no label is before it.
        {"2001:db8:1:2::1-2001:db8:1:2::f\n2001:db8::5-2001:db8::6\n", src, "auto",
         "2001:db8:1:2::1-2001:db8:1:2::f; 2001:db8::5-2001:db8::6"},
        {"127.0.0.1 localhost\nfe80::1%lo0 localhost\n192.0.2.1\tone two.example # three\n0.0.0.0 "
         "ads.example\n",
         src, "auto", "192.0.2.1"},
        // JSON lines, if members are chosen; a count is no address; the same address twice is one.
        {"{\"ip\": \"192.0.2.1\", \"seen_by\": \"192.0.2.9\"}\n\n{\"ip\": \"192.0.2.2\"}\n", src, "json:ip",
         "192.0.2.1; 192.0.2.2"},
        {"{\"prefixes\": 2, \"ips\": [\"192.0.2.1\", null]}", src, "auto", "192.0.2.1"},
        {"{\"ip\": \"192.0.2.1\", \"ip_str\": \"192.0.2.1\"}\n", src, "auto", "192.0.2.1"},
        // Azure, Oracle and Fastly name theirs so.
        {"{\"values\": [{\"name\": \"a\", \"properties\": {\"addressPrefixes\": [\"192.0.2.0/25\"]}}]}", src,
         "auto", "192.0.2.0-192.0.2.127"},
        {"{\"regions\": [{\"cidrs\": [{\"cidr\": \"192.0.2.0/25\", \"tags\": [\"x\"]}]}]}", src, "auto",
         "192.0.2.0-192.0.2.127"},
        {"{\"addresses\": [\"192.0.2.1\"], \"ipv6_addresses\": [\"2001:DB8::a\"]}", src, "auto",
         "192.0.2.1; 2001:db8::a"},
    };
    for (const auto& one : cases) {
        const std::string read = text_of(read_text(one.text, one.fields, one.format));
        EXPECT_EQ(read.substr(0, std::string(one.entries).size()), one.entries) << one.text;
        if (read.starts_with("error: "))
            expect_says(read);
        else
            EXPECT_EQ(read, one.entries) << one.text;
    }
}

// What would be read as something else than it says.
TEST(Formats, OddListsAreRefusedRatherThanMisread) {
    const struct {
        std::string text;
        std::uint32_t fields;
        const char* format;
    } cases[] = {
        {"create bad hash:ip bitmask 255.0.255.0\nadd bad 192.0.2.0\n", src, "auto"},
        {"delete element inet filter bad { 192.0.2.1 }\n", src, "nft"},
        {"add element ip t bad { 192.0.2.1 }\nget element ip t bad { 192.0.2.2 }\n", src, "auto"},
        {"reset element ip t bad { 192.0.2.1 }\n", src, "nft"},
        {"add element ip t bad { 192.0.2.1 }\nadd element ip t bad { 192.0.2.2 }\ndestroy element ip t bad "
         "{\n"
         "192.0.2.1 . 80 }",
         src, "auto"},
        {"add element ip t bad { 192.0.2.1 }\nflush set ip t bad\nadd element ip t bad { 192.0.2.2 }\n", src,
         "auto"},
        {"add element t bad { 192.0.2.1 }\nflush set t bad\n", src, "nft:bad"},
        {"add element t bad { 192.0.2.1 }\nflush ruleset\n", src, "auto"},
        {"add element t bad { 192.0.2.1 }\ndelete set t bad\n", src, "auto"},
        {"add element ip t bad { 192.0.2.1 }\ndestroy table ip t\nadd element ip t bad { 192.0.2.2 }\n", src,
         "auto"},
        // The list of a variable is that of the sets which it filled.
        {"define x = { 192.0.2.1 }\nadd element inet f b $x\nflush set inet f b\n", src, "auto"},
        {"define x = { 192.0.2.1 }\ntable inet f {\nset b { elements = $x }\n}\ndelete set inet f b\n", src,
         "auto"},
        {"define x = { 192.0.2.1 }\nadd element inet f b $x\ndelete table inet f\n", src, "auto"},
        {"define x = { 192.0.2.1 }\nredefine x = { 192.0.2.2 }\nadd element inet f b $x\n", src, "auto"},
        {"table ip a {\ndefine x = { 192.0.2.1 }\n}\ntable ip b {\ndefine x = { 192.0.2.2 }\n"
         "set b { elements = $x }\n}\n",
         src, "auto"},
        {"define x = { 192.0.2.1 }\nundefine x\ndefine x = { 192.0.2.2 }\nadd element f b $x\n", src,
         "nft:x"},
        // Elements that are elsewhere.
        {"add element ip t bad { 192.0.2.1 }\ninclude \"more.nft\"\n", src, "auto"},
        {"set bad { elements = $bad }\nadd element ip t bad { 192.0.2.1 }\n", src, "auto"},
        {"add element ip t bad { 192.0.2.1 }\nset bad { elements = $more; }\n", src, "nft:bad"},
        {"add element ip t bad { 192.0.2.1 }\nadd element ip t bad $more\n", src, "auto"},
        {"define more = { 192.0.2.1 }\nset bad { elements = $more }\nadd element t bad { 192.0.2.2 }\n", src,
         "nft:bad"},
        {"add bad 192.0.2.1\nflush bad\nadd bad 192.0.2.2\n", src, "auto"},
        {"flush bad\nadd bad 192.0.2.1\nadd bad 192.0.2.2\nflush\n", src, "ipset"},
        {"add bad 192.0.2.1\ndel bad 192.0.2.1\n", src, "auto"},
        {"add bad 192.0.2.1\ndestroy bad\n", src, "auto"},
        {"{\"nftables\": [{\"add\": {\"element\": {\"name\": \"bad\", \"elem\": [\"192.0.2.1\"]}}},\n"
         "{\"delete\": {\"element\": {\"name\": \"bad\", \"elem\": [\"192.0.2.1\"]}}}]}",
         src, "auto"},
        {"{\"nftables\": [{\"add\": {\"element\": {\"name\": \"bad\", \"elem\": [\"192.0.2.1\"]}}},\n"
         "{\"get\": {\"element\": {\"name\": \"bad\", \"elem\": [\"192.0.2.2\"]}}}]}",
         src, "auto"},
        {"{\"nftables\": [{\"add\": {\"element\": {\"name\": \"bad\", \"elem\": [\"192.0.2.1\"]}}},\n"
         "{\"flush\": {\"set\": {\"name\": \"bad\"}}}]}",
         src, "auto"},
        {"{\"nftables\": [{\"add\": {\"element\": {\"name\": \"bad\", \"elem\": [\"192.0.2.1\"]}}},\n"
         "{\"destroy\": {\"table\": {\"name\": \"t\"}}}]}",
         src, "auto"},
        {"{\"nftables\": [{\"add\": {\"element\": {\"name\": \"a\", \"elem\": [\"192.0.2.1\"]}}},\n"
         "{\"add\": {\"element\": {\"name\": \"b\", \"elem\": [\"192.0.2.2\"]}}}]}",
         src, "auto"},
        {"{\"ip\": 3221225985}", src, "json"},
        {"[\"192.0.2.1\", 3221225986]", src, "auto"},
        {"{\"nftables\": [{\"set\": {\"name\": \"a\", \"elem\": [\"192.0.2.1\"]}},\n"
         "{\"set\": {\"name\": \"b\", \"elem\": [\"192.0.2.2\"]}}]}",
         src, "auto"},
        {"{\"map\": {\"name\": \"a\", \"elem\": [[\"192.0.2.1\", \"drop\"]]}}", src, "auto"},
        {"{\"ips\": [\"192.0.2.1\"],\n\"ips\": [\"192.0.2.2\"]}", src, "auto"},
        {"{\"ip\": \"192.0.2.1\"}\n{\"ip\": \n", src, "json"},
        {"{\"ip\": \"192.0.2.1\"}\n{\"ip\": \"192.0.2.2\", \"ip\": \"192.0.2.3\"}\n", src, "plain"},
        {"{\"ip\": \"192.0.2.2\", \"ip\": null, \"type\": \"metadata\"}\n192.0.2.1\n", src, "auto"},
        {"{\"ip\": \"192.0.2.0\", \"last_ip\": \"192.0.2.255\"}\n", src, "plain"},
        {"{\"ip\": \"192.0.2.0\", \"last_ip\": \"192.0.2.255\"}\n", src, "auto"},
        {"\xff\xfe"
         "1",
         src, "auto"},
        {"fe80::1%eth0\n", src, "auto"},
    };
    for (const auto& one : cases)
        expect_error(read_text(one.text, one.fields, one.format), ErrorKind::bad_input);
}

// Whose other members nobody would see.
TEST(Formats, RangesInTwoCellsAreRefused) {
    for (const char* text :
         {"network,prefixlen\n192.0.2.0,24\n198.51.100.0,16\n", "net;Prefix Length\n192.0.2.0;/24\n",
          "ip,cidr,why\n192.0.2.1,32,x\n192.0.2.0,25,x\n", "ip,mask\n2001:db8::,64\n",
          "network,netmask\n192.0.2.0,255.255.255.0\n", "start,end\n192.0.2.1,192.0.2.9\n",
          "ip_from,ip_to\n192.0.2.1,192.0.2.9\n", "first_ip,last_ip\n192.0.2.1,192.0.2.9\n192.0.2.11,\n",
          "[{\"ip\": \"192.0.2.0\", \"prefixlen\": 24}]",
          "{\"ip\": \"192.0.2.0\", \"prefix-length\": \"24\"}\n",
          "{\"ip\": \"192.0.2.9\"}\n{\"length\": 24, \"ip\": \"192.0.2.0\"}\n",
          "[{\"netmask\": \"255.255.255.0\", \"ip\": \"192.0.2.0\"}]",
          "{\"list\": [{\"address\": \"2001:db8::\", \"cidr\": 32}]}",
          "[{\"start\": \"192.0.2.1\", \"end\": \"192.0.2.9\"}]",
          "[{\"endIp\": \"192.0.2.9\", \"startIp\": \"192.0.2.1\"}]",
          "{\"first\": \"192.0.2.1\", \"last\": \"192.0.2.9\"}\n"}) {
        const Result<Feed> feed = read_text(text);
        expect_error(feed, ErrorKind::bad_input);
        if (!feed) EXPECT_EQ(feed.error().message.find("as in"), std::string::npos) << text;
    }
    const char* const ends = "[{\"start\": \"192.0.2.1\", \"end\": \"192.0.2.9\"}]";
    expect_error(read_text(ends, src, "json:start+end"), ErrorKind::bad_input);
    expect_error(read_text("start,end\n192.0.2.1,192.0.2.9\n", src, "csv:start+end"), ErrorKind::bad_input);
    // What makes no more of them than they are, and what is chosen.
    const struct {
        const char* text;
        const char* format;
        const char* entries;
    } cases[] = {
        {"ip,prefixlen\n192.0.2.1,32\n2001:db8::1,128\n192.0.2.2,\n", "auto",
         "192.0.2.1; 2001:db8::1; 192.0.2.2"},
        {"prefix,length\n192.0.2.0/24,24\n", "auto", "192.0.2.0-192.0.2.255"},
        {"ip,last_seen,length\n192.0.2.1,2026-11-22,64\n", "auto", "192.0.2.1"},
        {"[{\"ip\": \"192.0.2.1\", \"cidr_length\": 32, \"length\": 1500}]", "auto", "192.0.2.1"},
        {"{\"ip\": \"192.0.2.1\", \"to\": \"Berlin\"}\n", "auto", "192.0.2.1"},
        {"{\"length\": 2, \"ips\": [\"192.0.2.1\", \"192.0.2.2\"]}", "auto", "192.0.2.1; 192.0.2.2"},
        // Addresses that are netmasks, too.
        {"cidr,length\n240.0.0.0,32\n", "auto", "240.0.0.0"},
        {"{\"cidr\": \"240.0.0.0\"}\n", "auto", "240.0.0.0"},
        {"[{\"cidr\": \"240.0.0.0\"}]", "auto", "240.0.0.0"},
        {"cidr,country\n240.0.0.0,DE\n", "geo:DE", "240.0.0.0"},
        {"network,prefixlen\n192.0.2.0,24\n", "csv:network", "192.0.2.0"},
        {"start,end\n192.0.2.1,192.0.2.9\n", "csv:1", "192.0.2.1"},
        {"[{\"ip\": \"192.0.2.0\", \"prefixlen\": 24}]", "json:ip", "192.0.2.0"},
        {ends, "json:start", "192.0.2.1"},
        {ends, "json:end", "192.0.2.9"},
    };
    for (const auto& one : cases)
        EXPECT_EQ(text_of(read_text(one.text, src, one.format)), one.entries) << one.text;
}

// Plain lines whose further columns could make them another format's, in which some of them are no entry.
TEST(Formats, PlainListsLoseNoMembers) {
    const struct {
        std::string text;
        std::uint32_t fields;
        const char* entries;
    } cases[] = {
        {"240.1.2.3 classE\n192.0.2.1 foo\n", src, "240.1.2.3; 192.0.2.1"},
        {"224.0.0.5 ospf\n192.0.2.1 foo\n", src, "224.0.0.5; 192.0.2.1"},
        {"127.0.0.1 x\n192.0.2.1\n", src, "127.0.0.1; 192.0.2.1"},
        {"127.0.0.1 x\n192.0.2.1 2026-11-22 seen: twice\n", src, "127.0.0.1; 192.0.2.1"},
        {"127.0.0.1 tcp\n192.0.2.1 udp\n", SIEVE_FIELD_DST | SIEVE_FIELD_PROTO,
         "127.0.0.1 tcp; 192.0.2.1 udp"},
        {"192.0.2.0-192.0.2.255,230,CN\n198.51.100.7,10,CN\n", src, "198.51.100.7; 192.0.2.0-192.0.2.255"},
        {"198.51.100.7 # as in a:192.0.2.0-192.0.2.9\n198.51.100.8\n", src, "198.51.100.7; 198.51.100.8"},
    };
    for (const auto& one : cases) {
        const Result<Feed> feed = read_text(one.text, one.fields);
        EXPECT_EQ(text_of(feed), one.entries) << one.text;
        if (feed) EXPECT_TRUE(feed->decided.empty()) << feed->decided[0];
    }
}

// Formats of single addresses: a key of several fields may look like them.
TEST(Formats, KeysOfSeveralFieldsArePlain) {
    constexpr std::uint32_t pair = SIEVE_FIELD_SRC | SIEVE_FIELD_DST;
    const struct {
        const char* text;
        std::uint32_t fields;
    } cases[] = {
        {"2001:db8::1 2001:db8:1::5-2001:db8:1::9\n", pair},
        {"192.0.2.1 192.0.2.9\n2001:db8::5-2001:db8::9 2001:db8:1::5-2001:db8:1::9\n", pair},
        {"192.0.2.0 192.0.2.255 24\n", pair | SIEVE_FIELD_DPORT},
        {"192.0.2.0/24,443\n192.0.2.1,*\n", SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT},
        {"*,443\n192.0.2.1,80\n", SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT},
    };
    for (const auto& one : cases) {
        const DetectedSyntax detected = detect_syntax(one.text, one.fields);
        EXPECT_EQ(detected.syntax, ListSyntax::plain) << one.text;
        EXPECT_FALSE(detected.may_be_plain) << one.text;
    }
}

TEST(Formats, ListsThatMayBePlainAreRefused) {
    const struct {
        const char* text;
        const char* format; // which the list may have
        const char* as_format;
        const char* as_plain;
    } cases[] = {
        {"127.0.0.1 x\n192.0.2.1 foo\n", "hosts", "192.0.2.1", "127.0.0.1; 192.0.2.1"},
        {"192.0.2.1 gate.example\n::1 localhost\n127.0.0.1 localhost\n", "hosts", "192.0.2.1",
         "192.0.2.1; ::1; 127.0.0.1"},
        {"192.0.2.0-192.0.2.255,230,CN\n198.51.100.0-198.51.100.9,10,CN\n", "p2p",
         "198.51.100.0-198.51.100.9", "192.0.2.0-192.0.2.255; 198.51.100.0-198.51.100.9"},
    };
    for (const auto& one : cases) {
        expect_error(read_text(one.text), ErrorKind::bad_input);
        EXPECT_EQ(text_of(read_text(one.text, src, one.format)), one.as_format);
        EXPECT_EQ(text_of(read_text(one.text, src, "plain")), one.as_plain);
    }
}

// What shows that a list is no plain one, though its lines could be: one sink for many names, and eMule's
// columns.
TEST(Formats, LinesTogetherTellAFormat) {
    const struct {
        std::string text;
        const char* entries;
    } cases[] = {
        {"0.0.0.0 a.example\n0.0.0.0 b.example\n0.0.0.0 c.example\n192.0.2.1 d.example\n", "192.0.2.1"},
        {"127.0.0.1\tlocalhost\n127.0.0.1 a.example b.example\n240.0.0.9 c\n192.0.2.1 d.example\n127.0.0.1 "
         "e\n",
         "192.0.2.1"},
        {"192.0.2.0 - 192.0.2.9 , 200 , x\n198.51.100.7 - 198.51.100.9 , 000 , y\n",
         "198.51.100.7-198.51.100.9"},
        {"192.0.2.010-192.0.2.019,200,x\n192.0.2.020-192.0.2.029,1,y\n", "192.0.2.20-192.0.2.29"},
    };
    for (const auto& one : cases) {
        const Result<Feed> feed = read_text(one.text);
        EXPECT_EQ(text_of(feed), one.entries) << one.text;
        if (feed) expect_says(feed->decided.at(0));
    }
}

// However the blocks are cut, and if the format is given, too.
TEST(Formats, WhatAFormatLeavesOutIsCounted) {
    std::string text;
    for (int i = 0; i < 50'000; i++)
        text += i % 10 == 0 ? "192.0.2.1 a.example\n" : "0.0.0.0 b" + std::to_string(i) + ".example\n";
    for (const char* format : {"auto", "hosts"}) {
        const Result<Feed> feed = read_text(text, src, format);
        ASSERT_TRUE(feed) << feed.error().message;
        ASSERT_EQ(feed->decided.size(), 1U);
        EXPECT_NE(feed->decided[0].find(" 45000 lines "), std::string::npos) << feed->decided[0];
        expect_says(feed->decided[0]);
    }
    EXPECT_TRUE(read_text("192.0.2.1 a.example\n", src, "hosts")->decided.empty());
}

// A first line that was meant as an entry is no heading.
TEST(Formats, AMalformedFirstLineIsNoHeading) {
    for (const char* cell : {"010.1.1.1", "1.2.3.256", "10.0.0.0/33", "1.2.3", "2001:db8::0/129",
                             "2001:db8:::1", "fe80::1%eth0", "Ip:1.2.3.256", "[2001:db8::g]:80"}) {
        const std::string text = std::string(cell) + ",x\n192.0.2.1,y\n";
        for (const char* format : {"auto", "csv:1"})
            expect_error(read_text(text, src, format), ErrorKind::bad_input);
        EXPECT_EQ(text_of(read_text(text, src, "csv:1", true)), "192.0.2.1") << cell;
        EXPECT_EQ(read_text(text, src, "csv:1", true)->skipped, 1U) << cell;
    }
    for (const char* heading : {"ip,country", "address,ad", "Ip:port,x", "feed,dad", "v1.2,x"})
        EXPECT_EQ(text_of(read_text(std::string(heading) + "\n192.0.2.1,y\n", src, "csv:1")), "192.0.2.1")
            << heading;
}

// However the blocks are cut: a flush is judged by all entries before it.
TEST(Formats, AFlushBehindTheFirstBlockTakesEntriesOut) {
    std::string text;
    for (int i = 0; i < 20'000; i++) text += "add other 192.0.2.9\n";
    EXPECT_EQ(text_of(read_text(text + "flush bad\nadd bad 192.0.2.1\n", src, "ipset:bad")), "192.0.2.1");
    expect_error(read_text("add bad 192.0.2.1\n" + text + "flush bad\n", src, "ipset:bad"),
                 ErrorKind::bad_input);
    const Result<Feed> feed =
        read_text("add bad 192.0.2.1\n" + text + "flush bad\nflush\n", src, "ipset:bad", true);
    EXPECT_EQ(text_of(feed), "192.0.2.1");
    EXPECT_EQ(feed->skipped, 2U);
}

// `create` lines belong before all entries; one that comes too late is refused if it matters.
TEST(Formats, ANetmaskBehindTheHeadIsRefused) {
    std::string text = "add bad 192.0.2.0\n";
    while (text.size() < format_head_bytes) text += "add bad 198.51.100.7\n";
    expect_error(read_text(text + "create bad hash:ip netmask 24\n"), ErrorKind::bad_input);
    EXPECT_TRUE(read_text(text + "create bad hash:ip\ncreate other hash:ip netmask 24\n"));
}

TEST(Formats, BadLinesAreSkippedOnRequest) {
    const Result<Feed> feed = read_text("[\"192.0.2.1\", \"nonsense\", \"192.0.2.2\"]", src, "auto", true);
    EXPECT_EQ(text_of(feed), "192.0.2.1; 192.0.2.2");
    EXPECT_EQ(feed->skipped, 1U);
    EXPECT_EQ(feed->lines, 3U);
    EXPECT_EQ(text_of(read_text("ip,n\n192.0.2.1,\n,\n192.0.2.3,\n", src, "csv:ip", true)),
              "192.0.2.1; 192.0.2.3");
    const Result<Feed> doubled = read_text(
        "{\"ip\": \"192.0.2.2\", \"ip\": \"192.0.2.3\"}\n{\"ip\": \"192.0.2.1\"}\n", src, "auto", true);
    EXPECT_EQ(text_of(doubled), "192.0.2.1");
    EXPECT_EQ(doubled->skipped, 1U);
}

TEST(Formats, EachInputHasItsOwn) {
    std::vector<Input> inputs;
    for (const char* name : {"dshield.txt", "netmasks.txt", "array.json", "hosts.txt"})
        inputs.push_back(Input::of(std::string("tests/data/formats/") + name).value());
    const Result<Feed> feed = read_feed(inputs, src, {.format = {}, .ranges = true, .threads = 2});
    ASSERT_TRUE(feed) << feed.error().message;
    EXPECT_EQ(feed->keys.size() + feed->ranges.size(), 3U + 3U + 3U + 2U);
    EXPECT_EQ(feed->decided.size(), 3U);
}

// Blocks are cut anywhere; the heading is read once.
TEST(Formats, LargeTablesAreReadInBlocks) {
    std::string text = "when,ip,why\n";
    for (int i = 0; i < 50'000; i++)
        text += "2026-11-22,10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." +
                std::to_string(i & 255) + ",\"a, b\"\n";
    const Result<Feed> feed = read_text(text);
    ASSERT_TRUE(feed) << feed.error().message;
    EXPECT_EQ(feed->keys.size(), 50'000U);
    EXPECT_EQ(feed->comments, 1U);
}

TEST(Formats, NamesAndParts) {
    for (const char* text : {"auto", "plain", "json", "hosts", "dshield", "ipset", "nft", "csv", "p2p",
                             "csv:ip", "csv:dst_ip+dst_port", "json:a+b", "nft:bad", "ipset:bad"})
        EXPECT_EQ(format_list_format(format_of(text)), text);
    const struct {
        const char* text;
    } cases[] = {
        {"xml"}, {""}, {"plain:x"}, {"csv:"}, {"csv:a++b"}, {"nft:a+b"},
    };
    for (const auto& one : cases) expect_error(parse_list_format(one.text), ErrorKind::invalid_request);
}

/// The manual page has each format, and says whether it has parts.
TEST(Formats, AreThoseOfTheManualPage) {
    std::ifstream file("docs/xdp-sieve.8");
    std::stringstream text;
    text << file.rdbuf();
    std::string page = text.str();
    page = page.substr(page.find("\n.Sh LIST FORMATS\n"));
    std::set<std::pair<std::string, bool>> described;
    const std::regex item("\n\\.It Cm ([a-z0-9]+)( (?:Ns Op )?:)?");
    const std::string list = page.substr(0, page.find("\n.El\n"));
    for (std::sregex_iterator at(list.begin(), list.end(), item), end; at != end; ++at)
        described.emplace((*at)[1], (*at)[2].matched);
    std::set<std::pair<std::string, bool>> known;
    for (const ListSyntaxFacts& facts : list_syntaxes())
        if (facts.syntax != ListSyntax::automatic)
            known.emplace(std::string(facts.name), !facts.parts.empty());
    EXPECT_EQ(described, known);
}

} // namespace
} // namespace sieve
