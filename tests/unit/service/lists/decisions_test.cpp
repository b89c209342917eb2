// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/decisions.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "unit/messages.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using std::chrono::milliseconds;
using test::at_second;
using test::entry;

constexpr Time now = Time(std::chrono::seconds(1000));

// As crowdsec 1.4.6 writes one.
std::string decision(const std::string& value, int id = 1, const std::string& duration = "59m30.5s",
                     const std::string& scope = "Ip", const std::string& type = "ban",
                     const std::string& origin = "cscli") {
    return R"({"duration":")" + duration + R"(","id":)" + std::to_string(id) + R"(,"origin":")" + origin +
           R"(","scenario":"manual","scope":")" + scope + R"(","type":")" + type + R"(","value":")" + value +
           "\"}";
}

Result<Decisions> parse(const std::string& text, const DecisionFilter& filter = {}) {
    return parse_decisions(text, filter, now);
}

void refused(const std::string& text) {
    expect_error(parse(text), ErrorKind::bad_input);
}

TEST(GoDuration, IsReadAsGoWritesIt) {
    using std::chrono::nanoseconds;
    const auto ms = [](std::int64_t count) { return nanoseconds(count * 1'000'000); };
    EXPECT_EQ(parse_go_duration("3h59m30s"), ms(14370000));
    EXPECT_EQ(parse_go_duration("-3h2m1.5s"), ms(-10921500));
    EXPECT_EQ(parse_go_duration("1.5s"), ms(1500));
    EXPECT_EQ(parse_go_duration("250ms"), ms(250));
    EXPECT_EQ(parse_go_duration("12us"), nanoseconds(12000));
    EXPECT_EQ(parse_go_duration("12\xc2\xb5s"), nanoseconds(12000));
    EXPECT_EQ(parse_go_duration("7ns"), nanoseconds(7));
    EXPECT_EQ(parse_go_duration("0s"), ms(0));
    EXPECT_EQ(parse_go_duration("167h59m59.123456789s"), nanoseconds(604799123456789));
    for (const char* text : {"", "-", "3", "h", "3x", "3 h", "3h4", "1e3s", "nans", "infs", "0x10s", "3h-4m",
                             "99999999999999h", "1..5s", "--1s", "s1"})
        EXPECT_FALSE(parse_go_duration(text)) << text;
}

TEST(Decisions, AreReadFromAnAnswer) {
    const auto parsed = parse(R"({"new":[)" + decision("192.0.2.1", 5) + "," +
                              decision("198.51.100.0/24", 6, "1h0m0s", "Range") + R"(],"deleted":[)" +
                              decision("2001:db8::1", 3, "-3h2m1.5s") + "]}");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->added, (std::vector<TimedEntry>{
                                 entry("192.0.2.1", entry_id(5, 1), now + milliseconds(3570500)),
                                 entry("198.51.100.0/24", entry_id(6, 1), now + std::chrono::hours(1))}));
    EXPECT_EQ(parsed->origins, std::vector<std::string>{"cscli"});
    ASSERT_EQ(parsed->deleted.size(), 1U);
    EXPECT_EQ(parsed->deleted[0].prefix, test::prefix_of("2001:db8::1"));
    EXPECT_EQ(parsed->deleted[0].id, entry_id(3, 1));
}

TEST(Decisions, TellTheirOriginsApart) {
    const auto of = [](const std::string& value, const std::string& origin) {
        return decision(value, 1, "1h", "Ip", "ban", origin);
    };
    auto parsed = parse(R"({"new":[)" + of("192.0.2.1", "CAPI") + "," + of("192.0.2.2", "lists:tor") + "," +
                        of("192.0.2.3", "CAPI") + "," + of("192.0.2.4", "") + R"(],"deleted":[)" +
                        of("192.0.2.5", "lists:tor") + "]}");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->origins, (std::vector<std::string>{"CAPI", "lists:tor"}));
    std::vector<int> codes;
    for (const TimedEntry& one : parsed->added) codes.push_back(origin_of(one.id));
    EXPECT_EQ(codes, (std::vector<int>{1, 2, 1, 0}));
    EXPECT_EQ(origin_of(parsed->deleted.at(0).id), 2);

    // More than there are codes for.
    std::string many;
    for (std::size_t i = 0; i <= most_origins; i++)
        many += (i == 0 ? "" : ",") + of("192.0.2.1", "lists:" + std::to_string(i));
    parsed = parse(R"({"new":[)" + many + "]}");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->origins.size(), most_origins);
    EXPECT_EQ(origin_of(parsed->added.at(most_origins - 1).id), most_origins);
    EXPECT_EQ(origin_of(parsed->added.at(most_origins).id), 0);
}

TEST(Decisions, HaveNumbersThatLeaveRoomForTheOrigin) {
    const auto of = [](const std::string& id) {
        return R"({"new":[{"duration":"1h","id":)" + id +
               R"(,"origin":"a","scope":"Ip","type":"ban","value":"192.0.2.1"}]})";
    };
    const auto most = parse(of("72057594037927935"));
    ASSERT_TRUE(most) << most.error().message;
    EXPECT_EQ(number_of(most->added.at(0).id), decision_numbers - 1);
    refused(of("72057594037927936"));
}

TEST(Decisions, MayBeNone) {
    const auto parsed = parse(R"({"deleted":null,"new":null})");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_TRUE(parsed->added.empty() && parsed->deleted.empty());
}

TEST(Decisions, OthersAreIgnoredAndCounted) {
    const std::string text = R"({"new":[)" + decision("DE", 1, "1h", "Country") + "," +
                             decision("192.0.2.1", 2, "1h", "Ip", "captcha") + "," +
                             decision("192.0.2.2", 3, "1h", "ip", "BAN", "CAPI") + "," +
                             decision("192.0.2.3", 4) + "]}";
    auto parsed = parse(text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->added.size(), 2U);
    EXPECT_EQ(parsed->ignored, 2U);
    EXPECT_EQ(parsed->first_ignored, "scope Country");
    parsed = parse(text, {.origins = {"cscli"}});
    ASSERT_TRUE(parsed);
    ASSERT_EQ(parsed->added.size(), 1U);
    EXPECT_EQ(number_of(parsed->added[0].id), 4U);
}

// A scenario in simulation mode decides what would be done. Whoever deletes such a decision finds none.
TEST(Decisions, ThatAreSimulatedAreIgnored) {
    const auto simulated = [](int id, const std::string& is) {
        std::string text = decision("192.0.2." + std::to_string(id), id);
        return text.insert(1, R"("simulated":)" + is + ",");
    };
    const auto parsed = parse(R"({"new":[)" + simulated(1, "true") + "," + simulated(2, "false") +
                              R"(],"deleted":[)" + simulated(3, "true") + "]}");
    ASSERT_TRUE(parsed) << parsed.error().message;
    ASSERT_EQ(parsed->added.size(), 1U);
    EXPECT_EQ(number_of(parsed->added[0].id), 2U);
    EXPECT_EQ(parsed->ignored, 1U);
    EXPECT_EQ(parsed->first_ignored, "simulated scenarios");
    EXPECT_EQ(parsed->deleted.size(), 1U);
}

TEST(Decisions, ThatHaveEndedAreLeftOut) {
    const auto parsed = parse(R"({"new":[)" + decision("192.0.2.1", 1, "-3h2m1.5s") + "," +
                              decision("192.0.2.2", 2, "0s") + "]}");
    ASSERT_TRUE(parsed);
    EXPECT_TRUE(parsed->added.empty());
    EXPECT_EQ(parsed->unusable, 0U);
}

TEST(Decisions, ValuesAreAddressesAndPrefixes) {
    EXPECT_EQ(parse_decision_value("::ffff:192.0.2.1", false), test::prefix_of("192.0.2.1"));
    EXPECT_EQ(parse_decision_value("::ffff:192.0.2.0/120", true), test::prefix_of("192.0.2.0/24"));
    EXPECT_EQ(parse_decision_value("192.0.2.77/24", true), test::prefix_of("192.0.2.0/24")); // bits beyond
    EXPECT_EQ(parse_decision_value("192.0.2.1/32", true), test::prefix_of("192.0.2.1"));
    EXPECT_EQ(parse_decision_value("2001:db8::/32", true), test::prefix_of("2001:db8::/32"));
    for (const char* text : {"0.0.0.0/0", "::/0", "::ffff:0:0/96", "192.0.2.1/33", "192.0.2.1/-1",
                             "192.0.2.1/", "/24", "192.0.2/24", "192.0.2.1/24x", "example.org", ""})
        EXPECT_FALSE(parse_decision_value(text, true)) << text;
    EXPECT_FALSE(parse_decision_value("192.0.2.0/24", false));
}

TEST(Decisions, AnUnusableValueLeavesOutItsDecisionOnly) {
    const auto parsed = parse(R"({"new":[)" + decision("0.0.0.0/0", 1, "1h", "Range") + "," +
                              decision("192.0.2.2", 2) + "," + decision("nobody", 3) + "]}");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->added.size(), 1U);
    EXPECT_EQ(parsed->unusable, 2U);
    EXPECT_EQ(parsed->first_unusable,
              "decision 1: \"0.0.0.0/0\" is every address of its family, expected a part of them");
}

TEST(Decisions, AnAnswerThatIsNoneIsRefused) {
    refused("<html>");
    refused("");
    refused(R"({"new":[)" + decision("192.0.2.1")); // cut short
    refused(R"({"new":null,"deleted":null} x)");
    refused(R"({"message":"access forbidden"})");
    refused("[]");
    refused("7");
    refused(R"({"new":7})");
    refused(R"({"new":{}})");
    refused(R"({"new":["x"]})");
    refused(R"({"new":[null]})");
    const std::string good = decision("192.0.2.1");
    const auto with = [&](std::string from, const std::string& to) {
        std::string text = good;
        text.replace(text.find(from), from.size(), to);
        return R"({"deleted":null,"new":[)" + good + "," + text + "]}";
    };
    refused(with(R"("id":1)", R"("id":"1")"));
    refused(with(R"("id":1)", R"("id":-1)"));
    refused(with(R"("id":1)", R"("id":1.5)"));
    refused(with(R"("id":1,)", ""));
    refused(with(R"("id":1)", R"("id":1,"id":2)"));
    refused(with(R"("192.0.2.1")", "17"));
    refused(with(R"("192.0.2.1")", "[]"));
    refused(with(R"("59m30.5s")", R"("soon")"));
    refused(with(R"("duration":"59m30.5s",)", ""));
    std::string deep = R"({"new":[{"x":)";
    for (int i = 0; i < 100'000; i++) deep += "[";
    refused(deep);
}

// After the specification of LAPI 1.7: a uuid, origins such as "lists:NAME", durations in whole seconds,
// negative ones of what is deleted, and null for no list.
TEST(Decisions, OfLapi17AreRead) {
    std::ifstream file("tests/data/crowdsec_stream_1.7.json");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(text.empty());
    auto parsed = parse(text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    using std::chrono::seconds;
    const auto id = [&](std::uint64_t number, const std::string& origin) {
        const auto place = std::ranges::find(parsed->origins, origin) - parsed->origins.begin();
        return entry_id(number, static_cast<std::uint8_t>(place + 1));
    };
    EXPECT_EQ(parsed->added,
              (std::vector<TimedEntry>{
                  entry("192.0.2.1", id(5001, "crowdsec"), now + seconds(14396)),
                  entry("2001:db8::7", id(5002, "lists:firehol_botscout_7d"), now + seconds(601923)),
                  entry("198.51.100.128/25", id(5003, "CAPI"), now + seconds(82801))}));
    ASSERT_EQ(parsed->deleted.size(), 2U);
    EXPECT_EQ(parsed->deleted[0].prefix, test::prefix_of("192.0.2.4"));
    EXPECT_EQ(parsed->deleted[1].prefix, test::prefix_of("198.51.100.0/25"));
    EXPECT_EQ(parsed->deleted[1].id, id(17, "lists"));
    EXPECT_EQ(parsed->ignored, 3U); // a captcha, a simulated one, a country
    EXPECT_EQ(parsed->unusable, 0U);
    for (const char* none : {R"({"new":null,"deleted":[]})", R"({"deleted":null,"links":null,"new":[]})"}) {
        parsed = parse(none);
        ASSERT_TRUE(parsed) << parsed.error().message;
        EXPECT_TRUE(parsed->added.empty() && parsed->deleted.empty());
    }
}

TEST(Decisions, MembersThatDoNotCountAreSkipped) {
    const auto parsed = parse(R"({"links":{"new":[1]},"new":[{"x":[{"id":"a"},[1]],"uuid":null,)" +
                              decision("192.0.2.1").substr(1) + "]}");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->added.size(), 1U);
}

// Whatever is changed in an answer, it is read or refused with one sentence, and what is read is well-formed.
TEST(Decisions, AnyBytesAreReadOrRefused) {
    const std::string good = R"({"new":[)" + decision("192.0.2.1", 5) + "," +
                             decision("198.51.100.0/24", 6, "1h0m0s", "Range") + R"(],"deleted":[)" +
                             decision("2001:db8::1", 3, "-3h2m1.5s") + R"(],"x":[{"y":null}]})";
    std::mt19937_64 random(17);
    int read = 0;
    for (int i = 0; i < 50'000; i++) {
        std::string text = good;
        for (std::uint64_t changes = 1 + random() % 3; changes > 0; changes--) {
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
            case 0:
                text[at] = static_cast<char>(random());
                break;
            case 1:
                text.erase(at, 1 + random() % 10);
                break;
            case 2:
                text.insert(at, 1, "{}[],:\"0-./"[random() % 11]);
                break;
            default:
                text.insert(at, good.substr(random() % good.size(), random() % 40));
            }
            if (text.empty()) break;
        }
        const auto parsed = parse(text);
        if (!parsed) {
            ASSERT_FALSE(parsed.error().message.empty());
            for (const char c : parsed.error().message)
                ASSERT_TRUE(c >= ' ' && c < 0x7f) << parsed.error().message;
            continue;
        }
        read++;
        for (const TimedEntry& timed_entry : parsed->added) {
            ASSERT_EQ(timed_entry.prefix.address & timed_entry.prefix.host_bits(), 0U);
            ASSERT_GT(timed_entry.prefix.length, 0);
            ASSERT_GT(timed_entry.until, now);
        }
    }
    EXPECT_GT(read, 1000);
}

TEST(Decisions, HaveLimits) {
    const std::string text = R"({"new":[)" + decision("192.0.2.1") + "," + decision("192.0.2.2") + "]}";
    expect_error(parse_decisions(text, {}, now, {.decisions = 1}), ErrorKind::bad_input);
    expect_error(parse_decisions(text, {}, now, {.bytes = 10}), ErrorKind::bad_input);
}

} // namespace
} // namespace sieve::service::live
