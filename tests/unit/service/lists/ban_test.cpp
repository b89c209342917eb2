// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/ban.hpp"

#include <gtest/gtest.h>

#include "libsieve/service/lists/record_log.hpp"
#include "unit/messages.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using test::at_second;
using test::prefix_of;

const Ban usual{.since = at_second(1000), .until = at_second(2000), .reason = "usual"};

BanChange added(const std::string& address, Time until = usual.until, const std::string& reason = "usual") {
    return {.prefix = prefix_of(address), .ban = {.since = usual.since, .until = until, .reason = reason}};
}
BanChange removed(const std::string& address) {
    return {.step = BanStep::remove, .prefix = prefix_of(address)};
}

std::vector<BanChange> parse(const std::string& text) {
    auto changes = parse_ban_text(text, "input", usual);
    if (!changes) throw std::runtime_error(changes.error().message);
    return *changes;
}
void refused(const std::string& text) {
    expect_error(parse_ban_text(text, "input", usual), ErrorKind::bad_input);
}

TEST(BanText, IsWhatIpsetSaves) {
    EXPECT_EQ(parse("create f2b hash:ip family inet timeout 600 comment\n"
                    "add f2b 192.0.2.1 timeout 90 comment \"sshd, \"\n"
                    "add f2b 2001:db8::/32 packets 5 bytes 300 timeout 0\r\n"
                    "del f2b 192.0.2.9\nflush f2b\nCOMMIT\n"),
              (std::vector<BanChange>{added("192.0.2.1", at_second(1090), "sshd, "),
                                      added("2001:db8::/32", never),
                                      removed("192.0.2.9"),
                                      {.step = BanStep::flush}}));
}

TEST(BanText, IsShorterByHand) {
    EXPECT_EQ(parse("# why\n\n  192.0.2.1\nadd 192.0.2.0/24 comment \"a \"b\" c\"\ndel 192.0.2.7\nflush\n"
                    "198.51.100.7 timeout 5"),
              (std::vector<BanChange>{added("192.0.2.1"),
                                      added("192.0.2.0/24", usual.until, "a \"b\" c"),
                                      removed("192.0.2.7"),
                                      {.step = BanStep::flush},
                                      added("198.51.100.7", at_second(1005))}));
    // A set may have the name of an option's.
    EXPECT_EQ(parse("add 10.0.0.1 timeout 7"), std::vector{added("10.0.0.1", at_second(1007))});
}

TEST(BanText, NamesTheWrongLine) {
    refused("192.0.2.1\n192.0.2.256\n");
    refused("add 0.0.0.0/0");
    refused("192.0.2.1 timeout -1");
    refused("192.0.2.1 timeout 99999999999999999999");
    refused("192.0.2.1 comment x");
    refused("192.0.2.1 nomatch");
    refused("add");
    refused("add myset 1.2.3");
    refused("flush a b");
    refused("192.0.2.1 comment \"" + std::string(256, 'x') + "\"");
    refused("192.0.2.1 comment \"a\x1b[2J\"");
}

TEST(BanChanges, AreBytesAndBack) {
    const std::vector<BanChange> all{added("192.0.2.1", never, ""),
                                     added("2001:db8::/32", at_second(7), "x"),
                                     removed("192.0.2.9"),
                                     {.step = BanStep::flush},
                                     added("192.0.2.2", at_second(8), std::string(255, 'r'))};
    const std::string bytes = bytes_of(all);
    EXPECT_EQ(bytes.size() % record_step, 0U);
    EXPECT_EQ(ban_changes_of(bytes), all);
    EXPECT_EQ(ban_changes_of(""), std::vector<BanChange>());
}

// Whatever a byte is changed to: it is refused, or what is read is as good as what was written.
TEST(BanChanges, AreCheckedWhenRead) {
    const std::string bytes = bytes_of({added("192.0.2.0/24", at_second(7), "why")});
    for (std::size_t cut = 1; cut < bytes.size(); cut++)
        EXPECT_FALSE(ban_changes_of(bytes.substr(0, cut))) << cut;
    int refused = 0;
    for (std::size_t at = 0; at < bytes.size(); at++)
        for (const int value : {0, 1, 2, 9, 127, 128, 255}) {
            std::string other = bytes;
            other[at] = static_cast<char>(value);
            const auto changes = ban_changes_of(other);
            refused += changes ? 0 : 1;
            if (!changes) continue;
            ASSERT_EQ(changes->size(), 1U);
            const BanChange& one = changes->front();
            EXPECT_TRUE(one.prefix.length >= 1 && one.prefix.length <= 128);
            EXPECT_EQ(one.prefix.address & one.prefix.host_bits(), 0U);
            EXPECT_TRUE(check_reason(one.ban.reason));
        }
    EXPECT_GT(refused, 50);
}

TEST(BanChanges, ChangeBans) {
    Bans bans;
    for (const BanChange& change :
         {added("192.0.2.1"), added("192.0.2.2"), added("192.0.2.1", never, "again"), removed("192.0.2.2"),
          removed("192.0.2.3")})
        change_bans(bans, change);
    ASSERT_EQ(bans.size(), 1U);
    EXPECT_EQ(additions(bans), std::vector{added("192.0.2.1", never, "again")});
    change_bans(bans, added("192.0.2.4", never, "other"));
    change_bans(bans, {.step = BanStep::flush, .ban = {.reason = "again"}});
    EXPECT_EQ(additions(bans), std::vector{added("192.0.2.4", never, "other")});
    change_bans(bans, {.step = BanStep::flush});
    EXPECT_TRUE(bans.empty());
}

} // namespace
} // namespace sieve::service::live
