// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Prefixes that come and go in a counting filter in force, as packets see them.
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/key_changes.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/maps/mapped_filter.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

Members members_of(const std::vector<std::string>& texts) {
    Members members(SIEVE_FIELD_SRC);
    for (const std::string& text : texts) {
        const MemberText member = value_or_fail(parse_member(text, SIEVE_FIELD_SRC));
        if (member.range)
            members.ranges.push_back(*member.range);
        else
            members.keys.add(member.key);
    }
    return members;
}

Image image_of_prefixes(const std::vector<std::string>& texts, std::uint32_t subtables) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_DDLCBF;
    options.kind.choices = subtables;
    options.memory = 1U << 17;
    options.prefixes.lengths = {std::vector<std::uint32_t>{120}, std::vector<std::uint32_t>{56}};
    options.seed = 4;
    options.trials = 10'000;
    return value_or_fail(build_set(members_of(texts), options, {})).image;
}

class LivePrefixes : public testing::TestWithParam<std::uint32_t> {
  protected:
    const Scratch& scratch_ = shared_program();
    packets::Carrier carrier_;

    bool drops(const std::string& address) {
        const sieve_key key = value_or_fail(parse_key(address, SIEVE_FIELD_SRC));
        return value_or_fail(scratch_.run(carrier_.carry(key, SIEVE_FIELD_SRC))) == XDP_DROP;
    }
    // How many of the entries found room.
    static std::size_t change(const FilterMap& map, KeyChange what, const std::vector<std::string>& texts) {
        MappedFilter live = value_or_fail(MappedFilter::open(map.id()));
        const StoredKeys stored(live.lookup(), live.probes());
        const auto entries = entries_of(members_of(texts));
        const KeyChangeReport report =
            value_or_fail(change_keys(stored, live.lookup(), live.file(), live.filter(), entries, what, {}));
        EXPECT_EQ(report.done + report.full.size(), entries.size());
        return report.done;
    }
};

TEST_P(LivePrefixes, TheInnerOneStillDropsWithoutTheOuterOne) {
    const Image image = image_of_prefixes({"10.0.0.0/22", "192.0.2.1", "2001:db8::/48"}, GetParam());
    const FilterMap map = map_of(image, "prefixes");
    ASSERT_TRUE(scratch_.ask_only(map.fd()));
    EXPECT_TRUE(drops("10.0.3.255") && drops("192.0.2.1") && drops("2001:db8:0:ffff::1"));
    EXPECT_FALSE(drops("10.0.4.0") || drops("192.0.2.2") || drops("2001:db8:1::1"));
    EXPECT_EQ(change(map, KeyChange::insert_again, {"10.0.1.0/24", "10.0.2.9", "2001:db8::/56"}), 3U);
    EXPECT_EQ(change(map, KeyChange::erase, {"10.0.0.0/22", "2001:db8::/48"}), 2U);
    EXPECT_TRUE(drops("10.0.1.77") && drops("10.0.2.9") && drops("192.0.2.1") && drops("2001:db8:0:ff::1"));
    EXPECT_FALSE(drops("10.0.0.1") || drops("10.0.2.10") || drops("2001:db8:0:100::1"));
    EXPECT_EQ(change(map, KeyChange::erase, {"10.0.1.0/24", "10.0.2.9", "2001:db8::/56", "192.0.2.1"}), 4U);
    for (const char* address : {"10.0.1.77", "10.0.2.9", "192.0.2.1", "2001:db8:0:ff::1"})
        EXPECT_FALSE(drops(address)) << address;
}

// Random nested prefixes. The kernel answers like a scan of the list: every member matches, and hardly
// another address does.
TEST_P(LivePrefixes, AtRandomAnswerLikeTheList) {
    std::mt19937_64 random(8);
    using Prefix = std::pair<std::uint32_t, unsigned>;
    const auto any = [&] {
        const unsigned length = 20 + static_cast<unsigned>(random() % 13);
        const auto address = static_cast<std::uint32_t>(0x0a000000 | (random() & 0xffff));
        return Prefix{address >> (32 - length) << (32 - length), length};
    };
    const auto text = [](std::uint32_t address) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(address);
        return format_key(key, SIEVE_FIELD_SRC);
    };
    const auto text_of = [&](const Prefix& prefix) {
        return text(prefix.first) + "/" + std::to_string(prefix.second);
    };
    std::set<Prefix> list;
    while (list.size() < 40) list.insert(any());
    std::vector<std::string> lines;
    for (const Prefix& prefix : list) lines.push_back(text_of(prefix));
    const Image image = image_of_prefixes(lines, GetParam());
    const FilterMap map = map_of(image, "prefixes");
    ASSERT_TRUE(scratch_.ask_only(map.fd()));
    std::size_t mistaken = 0, asked = 0, full = 0;
    for (std::size_t round = 0; round < bounded(100); round++) {
        const Prefix prefix = random() % 2 == 0 ? any() : *list.begin();
        const bool in = list.contains(prefix);
        const std::size_t done =
            change(map, in ? KeyChange::erase : KeyChange::insert_again, {text_of(prefix)});
        full += 1 - done;
        if (in) {
            ASSERT_EQ(done, 1U);
            list.erase(prefix);
        } else if (done == 1) {
            list.insert(prefix);
        }
        for (int i = 0; i < 24; i++) {
            auto address = static_cast<std::uint32_t>(0x0a000000 | (random() & 0xffff));
            if (i < 4) address = prefix.first | (static_cast<std::uint32_t>(random()) >> prefix.second % 32);
            bool member = false;
            for (const auto& [first, length] : list) member |= (address ^ first) >> (32 - length) == 0;
            const bool hit = drops(text(address));
            if (member) {
                ASSERT_TRUE(hit) << text(address) << " round " << round;
                continue;
            }
            asked++;
            mistaken += hit ? 1 : 0;
        }
    }
    EXPECT_GT(asked, 100U);
    EXPECT_LT(full, 10U);
    EXPECT_LE(mistaken, 2U) << "of " << asked;
}

// The marked entries of an exact set are nothing that a packet asks for.
TEST_P(LivePrefixes, AreVerified) {
    const std::vector<std::string> list = {"10.0.0.0/22", "10.0.0.0/23", "192.0.2.1"};
    const Image image = image_of_prefixes(list, GetParam());
    const FilterMap map = map_of(image, "prefixes");
    const auto exact = value_or_fail(exact_keys(members_of(list), image, "list"));
    const ExactSet verified = value_or_fail(ExactSet::create(image, exact, "prefixes"));
    ASSERT_TRUE(scratch_.table().replace({SIEVE_ACTION_PASS,
                                          {{.name = "set",
                                            .action = SIEVE_ACTION_DROP,
                                            .map_fd = map.fd(),
                                            .target = 0,
                                            .exact_fd = verified.fd()}}}));
    EXPECT_TRUE(drops("10.0.3.255") && drops("10.0.0.0") && drops("192.0.2.1"));
    EXPECT_FALSE(drops("10.0.4.0") || drops("192.0.2.0"));
    EXPECT_FALSE(exact_keys(members_of({"10.0.0.0/22", "192.0.2.1"}), image, "other"));
    EXPECT_FALSE(exact_keys(members_of({"10.0.0.0/22", "10.0.4.0/23", "192.0.2.1"}), image, "other"));
}

INSTANTIATE_TEST_SUITE_P(Subtables, LivePrefixes, testing::Values(4, 2));

} // namespace
} // namespace sieve::kernel
