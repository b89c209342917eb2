// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/exact_set.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sieve/exact_table.h>
#include <sieve/records.h>

#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;
using namespace std::chrono_literals;

class ExactSet : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    Result<KeysChanged> insert_for(const std::string& key, std::chrono::nanoseconds lifetime) {
        return change_keys(kernel, eth0, "set", keys({key}), KeyRequest{.lifetime = lifetime}, {});
    }

    // 192.0.2.0 to 192.0.2.199
    void put(int members = 200) {
        FeedSpec spec;
        spec.build.kind.kind = SIEVE_KIND_EXACT;
        spec.build.seed = 1;
        std::vector<std::string> lines;
        for (int i = 0; i < members; i++) lines.push_back("192.0.2." + std::to_string(i));
        const auto image = Image::load(files.image("set", lines, spec));
        kernel.put_filter(kernel.put("set").map_id, *image);
    }
    static KeySet keys(const std::vector<std::string>& texts) {
        KeySet set(SIEVE_FIELD_SRC);
        for (const auto& text : texts) set.add(*parse_key(text, SIEVE_FIELD_SRC));
        return set;
    }
    static KeySet range(const std::string& net, int first, int last) {
        std::vector<std::string> texts;
        for (int i = first; i <= last; i++)
            texts.push_back(net + std::to_string(i / 256) + "." + std::to_string(i % 256));
        return keys(texts);
    }
    kernel::SetInForce& set() { return kernel.running.table.sets[0]; }
    std::unique_ptr<RunningFilter> filter() { return std::move(*kernel.open_filter(set().map_id)); }
    // What a packet would find.
    bool matches(const std::string& text) {
        const auto open = filter();
        return kind_of(open->lookup())
            .exact()
            ->holds_key(open->lookup(), *parse_key(text, SIEVE_FIELD_SRC), open->lines());
    }
    std::set<std::string> listed() {
        std::set<std::string> texts;
        const auto list = list_keys(kernel, eth0, "set");
        EXPECT_TRUE(list) << list.error().message;
        EXPECT_TRUE(list->whole && list->unlisted == 0);
        for (const ListedKey& key : list->keys) texts.insert(listed_key_text(key, *list));
        EXPECT_EQ(texts.size(), list->keys.size());
        return texts;
    }
    // Whether a change holds the controllers' lock, so that nobody else can change anything.
    [[nodiscard]] bool is_locked() const { return kernel.count("lock") > kernel.count("unlock"); }
    void expect_intact() {
        const auto open = filter();
        const auto sum = kind_of(open->lookup()).exact()->add_up(open->lookup(), open->lines());
        ASSERT_TRUE(sum) << sum.error().message;
        EXPECT_EQ(sum->keys, open->file().keys);
        EXPECT_EQ(sum->sum, (HashSum{.locate = open->file().key_sum[0], .test = open->file().key_sum[1]}));
    }
};

TEST_F(ExactSet, ChangesInPlaceAndKnowsItsMembers) {
    put();
    EXPECT_TRUE(find_changeable(kernel, eth0, "set")->exact);
    const std::uint32_t map = set().map_id;
    const auto in = insert(kernel, eth0, "set", keys({"203.0.113.1", "192.0.2.7", "203.0.113.1"}), {});
    ASSERT_TRUE(in) << in.error().message;
    EXPECT_EQ(in->done, 1U);
    EXPECT_EQ(in->told.size(), 1U);
    EXPECT_EQ(in->repeated, 1U);
    EXPECT_EQ(in->keys, 201U);
    EXPECT_TRUE(matches("203.0.113.1"));
    // A key that is no member takes nothing with it.
    const auto out = erase(kernel, eth0, "set", keys({"203.0.113.1", "203.0.113.2", "192.0.2.7"}), {});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->done, 2U);
    EXPECT_EQ(out->told.size(), 1U);
    EXPECT_FALSE(matches("203.0.113.1") || matches("192.0.2.7"));
    EXPECT_EQ(listed().size(), 199U);
    EXPECT_EQ(filter()->file().changes, 3U);
    EXPECT_EQ(set().map_id, map);
    expect_intact();
}

TEST_F(ExactSet, GrowsByItself) {
    put();
    const std::uint32_t map = set().map_id;
    const std::uint64_t identity = filter()->file().identity[0];
    std::uint64_t grown = 0;
    for (int i = 0; i < 20; i++) {
        const auto more =
            change_keys(kernel, eth0, "set", range("198.51.", 50 * i, 50 * i + 49), KeyRequest{}, {});
        ASSERT_TRUE(more) << more.error().message;
        EXPECT_EQ(more->report.done, 50U);
        EXPECT_TRUE(more->report.full.empty());
        grown += more->grown;
    }
    EXPECT_GE(grown, 3U);
    EXPECT_LE(grown, 10U) << "it has room for a quarter more each time";
    EXPECT_NE(set().map_id, map);
    EXPECT_EQ(kernel.count("test set"), grown);
    EXPECT_EQ(filter()->file().identity[0], identity);
    EXPECT_EQ(filter()->file().changes, 1000U);
    EXPECT_EQ(filter()->file().keys, 1200U);
    EXPECT_EQ(listed().size(), 1200U);
    EXPECT_TRUE(matches("192.0.2.0") && matches("198.51.3.231") && !matches("198.51.3.232"));
    expect_intact();
    // Of the other family, too.
    const auto ipv6 = insert(kernel, eth0, "set", keys({"2001:db8::1", "2001:db8::2"}), {});
    ASSERT_TRUE(ipv6) << ipv6.error().message;
    EXPECT_EQ(ipv6->done, 2U);
    EXPECT_TRUE(matches("2001:db8::2") && !matches("2001:db8::3") && matches("192.0.2.0"));
    expect_intact();
}

// While the larger table is tested, somebody else deletes a member, inserts a key, and inserts one that is on
// its way already.
TEST_F(ExactSet, FollowsWhatOthersDoWhileItGrows) {
    put();
    kernel.once("test", [&] {
        ASSERT_TRUE(erase(kernel, eth0, "set", keys({"192.0.2.9"}), {}));
        ASSERT_TRUE(insert(kernel, eth0, "set", keys({"192.0.2.201", "198.51.0.4"}), {}));
    });
    const auto grown = change_keys(kernel, eth0, "set", range("198.51.", 0, 299), KeyRequest{}, {});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(grown->grown, 1U);
    EXPECT_EQ(kernel.count("test set"), 1U) << "it need not be built twice";
    EXPECT_FALSE(matches("192.0.2.9"));
    EXPECT_TRUE(matches("192.0.2.201") && matches("198.51.0.4") && matches("198.51.1.43") &&
                matches("192.0.2.8"));
    EXPECT_EQ(listed().size(), 200U + 300U - 1U + 1U);
    expect_intact();
}

TEST_F(ExactSet, IsNotReplacedIfSomebodyElseSwappedIt) {
    put();
    kernel.once("test", [&] {
        kernel.put_filter(500, *Image::load(files.path("set")));
        set().map_id = 500;
    });
    const auto grown = change_keys(kernel, eth0, "set", range("198.51.", 0, 299), KeyRequest{}, {});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(kernel.count("test set"), 2U);
    EXPECT_EQ(listed().size(), 500U);
}

// Whatever the set has become meanwhile, if the keys do not fit it, nothing is changed.
TEST_F(ExactSet, IsLeftAloneIfItBecameASetOfAnotherSort) {
    struct Sort {
        const char* description;
        sieve_kind kind;
        std::uint32_t fields;
    };
    for (const Sort& sort : {Sort{"a filter", SIEVE_KIND_DDLCBF, SIEVE_FIELD_SRC},
                             Sort{"of another field", SIEVE_KIND_EXACT, SIEVE_FIELD_DST},
                             Sort{"of more fields", SIEVE_KIND_EXACT, SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT},
                             Sort{"a set of ranges", SIEVE_KIND_RANGES, SIEVE_FIELD_SRC}}) {
        SCOPED_TRACE(sort.description);
        kernel.running = {};
        put();
        FeedSpec spec;
        spec.build.kind.kind = sort.kind;
        spec.fields = sort.fields;
        const char* line =
            sort.fields == (SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT) ? "192.0.2.1 53" : "192.0.2.1";
        const auto other = Image::load(files.image("other", {line}, spec));
        ASSERT_TRUE(other) << other.error().message;
        kernel.once("test", [&] {
            kernel.put_filter(500, *other);
            set().map_id = 500;
        });
        const auto grown = change_keys(kernel, eth0, "set", range("198.51.", 0, 299), KeyRequest{}, {});
        expect_error(grown, ErrorKind::changed_meanwhile);
        EXPECT_EQ(set().map_id, 500U);
        EXPECT_EQ(filter()->file().keys, 1U);
        EXPECT_FALSE(kernel.changed());
    }
}

// Others swap the set each time that a larger table is being built, until they have to wait for it.
TEST_F(ExactSet, GrowsHoweverOftenOthersSwapIt) {
    put();
    std::uint32_t swaps = 0;
    kernel.before("test", [&](const std::string&) {
        if (is_locked()) return Status();
        kernel.put_filter(500 + ++swaps, *Image::load(files.path("set")));
        set().map_id = 500 + swaps;
        return Status();
    });
    const auto grown = change_keys(kernel, eth0, "set", range("198.51.", 0, 299), KeyRequest{}, {});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(grown->report.done, 300U);
    EXPECT_GE(swaps, 1U) << "it is built without the lock at first";
    EXPECT_EQ(listed().size(), 500U);
    expect_intact();
}

// Somebody swaps it even so, such as a program that knows of no lock.
TEST_F(ExactSet, IsLeftToWhoeverIgnoresTheLock) {
    put();
    std::uint32_t swaps = 0;
    kernel.before("test", [&](const std::string&) {
        kernel.put_filter(500 + ++swaps, *Image::load(files.path("set")));
        set().map_id = 500 + swaps;
        return Status();
    });
    const auto grown = change_keys(kernel, eth0, "set", range("198.51.", 0, 299), KeyRequest{}, {});
    expect_error(grown, ErrorKind::changed_meanwhile);
    EXPECT_EQ(set().map_id, 500 + swaps);
    EXPECT_FALSE(kernel.changed());
}

// The growth of another process has made room, so that no second table is built.
TEST_F(ExactSet, TakesTheRoomThatOthersMade) {
    put();
    kernel.once("test", [&] {
        const auto other = change_keys(kernel, eth0, "set", range("198.18.", 0, 1999), KeyRequest{}, {});
        ASSERT_TRUE(other) << other.error().message;
        ASSERT_EQ(other->grown, 1U);
    });
    const auto in = change_keys(kernel, eth0, "set", range("198.51.", 0, 299), KeyRequest{}, {});
    ASSERT_TRUE(in) << in.error().message;
    EXPECT_EQ(in->report.done, 300U);
    EXPECT_EQ(in->report.keys, 2500U);
    EXPECT_EQ(in->grown, 0U);
    EXPECT_EQ(kernel.count("replace"), 1U);
    EXPECT_EQ(listed().size(), 2500U);
    expect_intact();
}

// A set of flows in which some of the keys that come find room, and others do not.
class ExactSetOfFlows : public ExactSet {
  protected:
    static constexpr std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    std::optional<Image> image;

    static KeySet flows(const std::string& net, int count) {
        KeySet set(fields);
        for (int i = 0; i < count; i++)
            set.add(*parse_key(fmt::format("{}{}.{} 53", net, i / 256, i % 256), fields));
        return set;
    }
    // 1,000 flows, in rows as full as a build makes them. It says that there is room for more than find
    // places.
    void put() {
        FeedSpec spec;
        spec.build.kind.kind = SIEVE_KIND_EXACT;
        spec.build.seed = 1;
        spec.fields = fields;
        std::vector<std::string> lines;
        flows("192.0.", 1000).for_each(0, 1000, [&](const sieve_key& key) {
            lines.push_back(format_key(key, fields));
        });
        auto loaded = Image::load(files.image("set", lines, spec));
        ASSERT_TRUE(loaded) << loaded.error().message;
        image.emplace(std::move(*loaded));
        kernel.put_filter(kernel.put("set").map_id, *image);
        auto& records = reinterpret_cast<sieve_records&>(filter()->lines().front());
        records.most = records.rows * SIEVE_RECORDS_IN_TAGGED_ROW;
    }
    // Inserts 20 flows. `meanwhile` happens while a larger table is built.
    KeysChanged insert_20(const std::function<void()>& meanwhile) {
        kernel.once("test", [&] {
            EXPECT_GT(filter()->file().changes, 0U) << "none found room";
            EXPECT_LT(filter()->file().changes, 20U) << "all found room";
            meanwhile();
        });
        const auto in = change_keys(kernel, eth0, "set", flows("198.51.", 20), KeyRequest{}, {});
        EXPECT_TRUE(in) << in.error().message;
        return in ? *in : KeysChanged{};
    }
};

TEST_F(ExactSetOfFlows, AllKeysComeAgainAfterASwap) {
    put();
    const KeysChanged in = insert_20([&] {
        kernel.put_filter(500, *image);
        set().map_id = 500;
    });
    EXPECT_EQ(in.report.done, 20U);
    EXPECT_TRUE(in.report.told.empty());
    EXPECT_EQ(in.report.keys, 1020U);
    EXPECT_EQ(list_keys(kernel, eth0, "set")->keys.size(), 1020U);
}

TEST_F(ExactSetOfFlows, KeysThatCameBeforeAnothersGrowthAreNoNews) {
    put();
    const KeysChanged in = insert_20(
        [&] { ASSERT_TRUE(change_keys(kernel, eth0, "set", flows("198.18.", 500), KeyRequest{}, {})); });
    EXPECT_EQ(in.report.done, 20U);
    EXPECT_TRUE(in.report.told.empty()) << "they were no members before";
    EXPECT_EQ(in.report.keys, 1520U);
    EXPECT_EQ(list_keys(kernel, eth0, "set")->keys.size(), 1520U);
}

// A table counts ends in units, which are long if one of its keys lives long.
TEST_F(ExactSet, AnEndThatWouldBeMuchTooLateIsRefused) {
    put();
    ASSERT_EQ(insert_for("203.0.113.1", 30 * 24h)->late.count(), 0);
    const auto refused = insert_for("203.0.113.2", 10s);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request); // its message has the time that is left
    EXPECT_FALSE(matches("203.0.113.2"));
    const auto late = insert_for("203.0.113.3", 5min);
    ASSERT_TRUE(late) << late.error().message;
    EXPECT_GT(late->late, 5min / 4);
    EXPECT_LE(late->late, 5min);
    EXPECT_EQ(insert_for("203.0.113.4", 30 * 24h)->report.done, 1U) << "beside an end that is near by now";
}

// A key that is about to end may have been there for long, so it keeps no ban for a month out.
TEST_F(ExactSet, AnEndThatMakesOthersLateIsTold) {
    put();
    ASSERT_EQ(insert_for("203.0.113.1", 10s)->report.done, 1U);
    ASSERT_EQ(insert_for("203.0.113.2", 1h)->late.count(), 0);
    const auto late = insert_for("203.0.113.3", 30 * 24h);
    ASSERT_TRUE(late) << late.error().message;
    EXPECT_TRUE(matches("203.0.113.1") && matches("203.0.113.3"));
    EXPECT_GT(late->late, 10s);
    EXPECT_LT(late->late, 3min);
}

// Ends lie in the table, where packets look at them. The first one asks for a table that can state it.
TEST_F(ExactSet, KeysEndByThemselves) {
    put();
    const auto insert_keys_for = [&](const KeySet& keys, std::chrono::nanoseconds lifetime) {
        return change_keys(kernel, eth0, "set", keys, KeyRequest{.lifetime = lifetime}, {});
    };
    // Time passes by moving the base that ends are counted from.
    const auto pass = [&](std::chrono::nanoseconds time) {
        reinterpret_cast<sieve_exact_ipv6&>(filter()->lines().front()).base -=
            static_cast<std::uint64_t>(time.count());
    };
    const auto expect_end = [&](const std::string& text, std::optional<std::chrono::nanoseconds> expected) {
        const auto list = list_keys(kernel, eth0, "set");
        ASSERT_TRUE(list) << list.error().message;
        for (const ListedKey& key : list->keys) {
            if (listed_key_text(key, *list) != text) continue;
            ASSERT_EQ(key.ends_in.has_value(), expected.has_value()) << text;
            if (!expected) return;
            const std::chrono::nanoseconds ends_in(*key.ends_in);
            EXPECT_GT(ends_in, *expected - 1min) << text << ": the test took a minute";
            EXPECT_LT(ends_in, *expected + *expected / 4) << text;
            return;
        }
        ADD_FAILURE() << text << " is not listed";
    };
    const auto ending = [&] { return count_ending(*filter()); };

    const auto in = insert_keys_for(keys({"203.0.113.1"}), 1h);
    ASSERT_TRUE(in) << in.error().message;
    EXPECT_EQ(in->report.done, 1U);
    EXPECT_EQ(in->grown, 1U) << "a table without ends stated one";
    ASSERT_EQ(insert_keys_for(keys({"203.0.113.2"}), 2h)->report.done, 1U);
    ASSERT_EQ(insert_keys_for(keys({"203.0.113.3"}), 2h)->grown, 0U);
    expect_end("203.0.113.2", 2h);
    expect_end("192.0.2.1", std::nullopt);
    // A member of the list has no end, and gets none.
    EXPECT_EQ(insert_keys_for(keys({"192.0.2.1"}), 1h)->report.told.size(), 1U);
    // A later end counts, an earlier one does not, and for good is for good.
    EXPECT_EQ(insert_keys_for(keys({"203.0.113.1"}), 3h)->other_end, 1U);
    EXPECT_EQ(insert_keys_for(keys({"203.0.113.1"}), 1h)->other_end, 0U) << "the later end stays";
    expect_end("203.0.113.1", 3h);
    // Growth keeps the ends.
    EXPECT_EQ(insert_keys_for(range("198.51.", 0, 299), 5h)->grown, 1U);
    expect_end("203.0.113.2", 2h);
    expect_end("198.51.1.43", 5h);
    expect_end("192.0.2.1", std::nullopt);
    EXPECT_EQ(ending().ending, 303U);
    EXPECT_EQ(*time_to_next_end(kernel, {}), std::nullopt) << "nobody has to wait for them";
    pass(2h + 40min);
    EXPECT_FALSE(matches("203.0.113.2"));
    EXPECT_TRUE(matches("203.0.113.1"));
    EXPECT_EQ(listed().size(), 501U);
    EXPECT_EQ(ending().ended, 2U);
    EXPECT_EQ(filter()->file().keys, 503U) << "entries that have ended stay until somebody needs the room";
    EXPECT_FALSE(erase(kernel, eth0, "set", keys({"203.0.113.2"}), {})->told.empty());
    // What has ended comes again, for a time or for good.
    EXPECT_EQ(insert_keys_for(keys({"203.0.113.2"}), 4h)->report.done, 1U);
    EXPECT_TRUE(matches("203.0.113.2"));
    EXPECT_EQ(filter()->file().keys, 503U);
    const auto expired = expire_keys(kernel, eth0, {});
    ASSERT_TRUE(expired) << expired.error().message;
    ASSERT_EQ(expired->size(), 1U);
    EXPECT_EQ(expired->front().taken_out, 1U);
    EXPECT_EQ(filter()->file().keys, 502U);
    EXPECT_TRUE(expire_keys(kernel, eth0, {})->empty());
    EXPECT_EQ(change_keys(kernel, eth0, "set", keys({"203.0.113.1"}), KeyRequest{}, {})->other_end, 1U);
    expect_end("203.0.113.1", std::nullopt);
    ASSERT_TRUE(erase(kernel, eth0, "set", keys({"198.51.1.43"}), {}));
    expect_intact();
    // Insertions that need the room take out what has ended, and the set need not grow.
    pass(5h);
    EXPECT_EQ(listed().size(), 201U);
    const auto many = change_keys(kernel, eth0, "set", range("198.18.", 0, 249), KeyRequest{}, {});
    ASSERT_TRUE(many) << many.error().message;
    EXPECT_EQ(many->expired, 300U);
    EXPECT_EQ(many->grown, 0U);
    EXPECT_EQ(listed().size(), 451U);
    // No end can be stated in the last units, so the table is built anew.
    pass(24h);
    EXPECT_EQ(insert_keys_for(keys({"203.0.113.9"}), 5h)->grown, 1U);
    expect_end("203.0.113.9", 5h);
    // A short life asks for a finer unit.
    EXPECT_EQ(insert_keys_for(keys({"203.0.113.10"}), 30s)->grown, 1U);
    pass(45s);
    EXPECT_FALSE(matches("203.0.113.10"));
    EXPECT_TRUE(matches("203.0.113.9"));
    expect_intact();
}

TEST_F(ExactSet, RefusesWhatAnExactSetNeedsNot) {
    put();
    const auto again = change_keys(kernel, eth0, "set", keys({"192.0.2.1"}),
                                   KeyRequest{.change = KeyChange::insert_again}, {});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().kind, ErrorKind::invalid_request);
    const auto net =
        change_keys(kernel, eth0, "set", Members(KeySet(SIEVE_FIELD_SRC), {{1, 4}}), KeyRequest{}, {});
    expect_error(net, ErrorKind::bad_input);
    EXPECT_EQ(filter()->file().changes, 0U);
    kernel.refuse("test set", ErrorKind::bad_input);
    const auto failed = change_keys(kernel, eth0, "set", range("198.51.", 0, 299), KeyRequest{}, {});
    ASSERT_FALSE(failed);
    EXPECT_EQ(listed().size(), 200U);
    expect_intact();
}

// The last writer died: a key stands twice, and the header counts wrongly.
TEST_F(ExactSet, IsSettledByTheNextWriterAndTheNextReader) {
    put();
    const auto half_done = [&] {
        const auto open = filter();
        const sieve_exact& exact = *sieve_exact_of(&open->lookup());
        auto& part = reinterpret_cast<sieve_exact_ipv6&>(open->lines()[0]);
        part.unsettled = SIEVE_EXACT_CHANGING;
        open->file().keys += 3;
        // Copy the first key whose other word has a free lane.
        sieve_line* lines = &open->lines()[SIEVE_EXACT_IPV4_LINE];
        const std::uint64_t none = (std::uint64_t{1} << exact.width) - 1;
        for (int i = 0; i < 200; i++) {
            const sieve_key key = *parse_key("192.0.2." + std::to_string(i), SIEVE_FIELD_SRC);
            const sieve_exact_place at = sieve_exact_locate(
                &exact, sieve_exact_permute(&exact, static_cast<std::uint32_t>(key.word[1])));
            __u64& first = lines[at.first / 8].word[at.first % 8];
            __u64& second = lines[at.second / 8].word[at.second % 8];
            if (sieve_exact_test(&exact, first, ~0ULL, at.rest) == 0) continue;
            if ((second & none) != none) continue;
            second = (second & ~none) | (exact.range + at.rest);
            return;
        }
        FAIL() << "no key can stand twice";
    };
    half_done();
    EXPECT_EQ(listed().size(), 200U);
    expect_intact();
    half_done();
    kernel.steps.clear();
    const auto in = insert(kernel, eth0, "set", keys({"203.0.113.1"}), {});
    ASSERT_TRUE(in) << in.error().message;
    EXPECT_EQ(in->keys, 201U);
    EXPECT_GE(kernel.count("grace period"), 1U);
    EXPECT_EQ(listed().size(), 201U);
    expect_intact();
    // What no writer leaves is refused.
    filter()->lines()[1].word[0] = 0x1234567890abcdef;
    reinterpret_cast<sieve_exact_ipv6&>(filter()->lines()[0]).unsettled = SIEVE_EXACT_CHANGING;
    expect_error(insert(kernel, eth0, "set", keys({"203.0.113.2"}), {}), ErrorKind::kernel_refused);
}

} // namespace
} // namespace sieve::control
