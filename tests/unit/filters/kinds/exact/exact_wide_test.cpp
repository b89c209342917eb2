// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `exact` for keys of several fields: against its list, against the model of its format, changed key
// by key, damaged at every bit.
#include "libsieve/filters/kinds/exact/exact_wide.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <sieve/records.h>

#include "libsieve/build/check_built.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/records.hpp"
#include "model/image_model.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

using Words = std::array<__u64, SIEVE_KEY_WORDS>;

constexpr std::uint32_t pair = SIEVE_FIELD_SRC | SIEVE_FIELD_DST;
constexpr std::uint32_t service = SIEVE_FIELD_DST | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;

// A flow of either family, with all fields.
sieve_key random_flow(std::mt19937_64& random) {
    sieve_key key{};
    const bool v4 = random() % 2 == 0;
    for (const int at : {0, 2}) {
        key.word[at] = v4 ? 0 : random() | 1;
        key.word[at + 1] = v4 ? sieve_v4_mapped(static_cast<std::uint32_t>(random())) : random();
    }
    key.word[4] = sieve_transport_word(static_cast<std::uint16_t>(random()),
                                       static_cast<std::uint16_t>(random()), random() % 2 == 0 ? 6 : 17);
    return key;
}

KeySet random_flows(std::size_t count, std::uint32_t fields, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    KeySet keys(fields);
    for (std::size_t i = 0; i < count; i++) keys.add(random_flow(random));
    return keys;
}

std::set<Words> words_of(const KeySet& keys) {
    std::set<Words> all;
    keys.for_each(0, keys.size(), [&](const sieve_key& key) { all.insert(std::to_array(key.word)); });
    return all;
}

BuiltSet built_of(const KeySet& keys, std::uint64_t room = 0) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    options.seed = 1;
    options.spare.room = room;
    auto built = build_set(keys, options, {});
    if (!built) {
        ADD_FAILURE() << built.error().message;
        std::abort();
    }
    return std::move(*built);
}

model::FilterImage model_of(const Image& image) {
    return model::FilterImage({reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()});
}

model::Key model_key(const sieve_key& key) {
    return {key.word[0], key.word[1], key.word[2], key.word[3], key.word[4]};
}

class ExactWide : public testing::TestWithParam<std::tuple<std::uint32_t, std::size_t>> {};

TEST_P(ExactWide, HoldsWhatIsListedAndNothingElse) {
    const auto [fields, count] = GetParam();
    const KeySet keys = random_flows(count, fields, count + fields);
    const std::set<Words> members = words_of(keys);
    const BuiltSet built = built_of(keys);
    const Image& image = built.image;
    EXPECT_EQ(built.report.keys, members.size());
    EXPECT_EQ(built.report.expected_fpr, 0);
    const Status checked = image.check("x.img");
    ASSERT_TRUE(checked) << checked.error().message;
    const auto listed = kind_of(image.lookup()).exact()->list(image.lookup(), image.filter());
    ASSERT_TRUE(listed) << listed.error().message;
    EXPECT_EQ(listed->size(), members.size());
    EXPECT_EQ(words_of(*listed), members);

    const model::FilterImage model = model_of(image);
    std::mt19937_64 random(1);
    KeySet asked(fields);
    const std::size_t step = 1 + keys.size() / 2'000;
    for (std::size_t i = 0; i < keys.size(); i++) {
        ASSERT_TRUE(image.contains(keys.at(i)));
        if (i % step != 0) continue;
        // Neighbours: one bit of one field differs.
        sieve_key near = keys.at(i);
        for (auto& word : near.word) word ^= std::uint64_t{1} << (random() % 64);
        asked.add(near);
        asked.add(keys.at(i));
        near = keys.at(i);
        near.word[random() % SIEVE_KEY_WORDS] ^= 1 << (8 * (random() % 4));
        asked.add(near);
        asked.add(random_flow(random));
    }
    for (std::size_t i = 0; i < asked.size(); i++) {
        const sieve_key key = asked.at(i);
        const bool member = members.contains(std::to_array(key.word));
        ASSERT_EQ(image.contains(key), member);
        ASSERT_EQ(model.contains(model_key(key)), member);
    }
}

INSTANTIATE_TEST_SUITE_P(FieldsAndSizes, ExactWide,
                         testing::Combine(testing::Values(pair, std::uint32_t{SIEVE_FIELD_ALL}, service,
                                                          SIEVE_FIELD_SRC | SIEVE_FIELD_SPORT,
                                                          std::uint32_t{SIEVE_FIELD_DPORT}),
                                          testing::Values(std::size_t{1}, std::size_t{2}, std::size_t{31},
                                                          std::size_t{1'000}, std::size_t{50'000})),
                         [](const auto& info) {
                             return fmt::format("Fields{}Keys{}", std::get<0>(info.param),
                                                std::get<1>(info.param));
                         });

// docs/exact.md has the table.
TEST(ExactWide, TakesTheBytesOfItsFields) {
    const auto bytes = [](std::uint32_t fields, std::size_t count) {
        const BuiltSet built = built_of(random_flows(count, fields, 19));
        return static_cast<double>(built.image.filter().size_bytes()) /
               static_cast<double>(built.report.keys);
    };
    EXPECT_NEAR(bytes(SIEVE_FIELD_ALL, 100'000), 43.8, 0.05);
    EXPECT_NEAR(bytes(pair, 100'000), 35.4, 0.05);
    EXPECT_NEAR(bytes(service, 100'000), 27.1, 0.05);
}

// Fields that are not the set's are not asked for.
TEST(ExactWide, LooksAtItsFieldsOnly) {
    std::mt19937_64 random(2);
    const sieve_key flow = random_flow(random);
    KeySet keys(service);
    keys.add(flow);
    const Image image = built_of(keys).image;
    sieve_key other = flow;
    other.word[0] ^= 1;
    other.word[4] ^= sieve_transport_word(0xffff, 0, 0);
    EXPECT_TRUE(image.contains(other));
    other.word[4] ^= sieve_transport_word(0, 1, 0);
    EXPECT_FALSE(image.contains(other));
}

TEST(ExactWide, CountsRepeatedKeysOnce) {
    KeySet keys = random_flows(100, SIEVE_FIELD_ALL, 3);
    keys.append(random_flows(60, SIEVE_FIELD_ALL, 3));
    const BuiltSet built = built_of(keys);
    EXPECT_EQ(built.report.keys, 100U);
    EXPECT_EQ(built.report.duplicates, 60U);
    EXPECT_EQ(built.image.file().entries, 160U);
    EXPECT_TRUE(built.image.check("x.img"));
}

TEST(ExactWide, RefusesWhatItCannotHold) {
    const KeySet keys = random_flows(10, pair, 4);
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    const KeyRange range{.source = {sieve_v4_mapped(0x0a000000), sieve_v4_mapped(0x0a0000ff)},
                         .destination = {sieve_v4_mapped(1), sieve_v4_mapped(1)},
                         .fields = pair};
    expect_error(build_set(Members(keys, {}, {range}), options, {}), ErrorKind::invalid_request);
    options.kind.kind = automatic_kind;
    const auto chosen = build_set(keys, options, {});
    ASSERT_TRUE(chosen) << chosen.error().message;
    EXPECT_NE(chosen->image.lookup().kind, SIEVE_KIND_EXACT) << "only if it is asked for";
}

// The same list and seed give the same image; another list is found out.
TEST(ExactWide, IsComparedWithItsList) {
    const KeySet keys = random_flows(3'000, SIEVE_FIELD_ALL, 5);
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    options.seed = 1;
    const Image image = built_of(keys).image;
    const Image again = built_of(keys).image;
    ASSERT_EQ(image.bytes(), again.bytes());
    EXPECT_EQ(std::memcmp(image.filter().data(), again.filter().data(), image.filter().size_bytes()), 0);
    const Status same = check_built(image, Members(keys, {}), options, {});
    EXPECT_TRUE(same) << same.error().message;
    KeySet other = random_flows(2'999, SIEVE_FIELD_ALL, 5);
    other.append(random_flows(1, SIEVE_FIELD_ALL, 6));
    expect_error(check_built(image, Members(other, {}), options, {}), ErrorKind::bad_input);
    EXPECT_FALSE(check_built(image, Members(random_flows(2'999, SIEVE_FIELD_ALL, 5), {}), options, {}));
}

// --- bad input ---------------------------------------------------------------------------------------------

class ExactWideContent : public testing::Test {
  protected:
    void refused(const std::string& place = {}) {
        image.seal();
        const Status status = image.check("x.img");
        expect_error(status, ErrorKind::bad_input);
        if (!status) {
            EXPECT_TRUE(status.error().message.starts_with("x.img: " + place)) << place;
        }
    }
    void restore() { image = built_of(keys).image; }
    Records records() { return Records({image.filter().data(), image.filter().size()}); }
    std::uint32_t place(bool used, std::uint32_t from = 0) {
        while ((records().tag(from) != 0) != used) from++;
        return from;
    }
    static std::string text(std::uint32_t place) {
        return fmt::format("row {}, place {}: ", place / SIEVE_RECORDS_IN_TAGGED_ROW,
                           place % SIEVE_RECORDS_IN_TAGGED_ROW);
    }

    KeySet keys = random_flows(200, service, 7);
    Image image = built_of(keys).image;
};

// Each bit of the filter by itself, the checksum put right: the image is refused, but for bits that say
// nothing of a key: records without a tag, and a few of the first line.
TEST_F(ExactWideContent, WithAnyBitFlippedIsRefused) {
    ASSERT_TRUE(image.check("x.img"));
    std::uint64_t accepted = 0, expected = 0;
    for (std::uint32_t place = 0; place < records().places(); place++)
        if (records().tag(place) == 0) expected += 3 * 64; // words of this record
    std::size_t most = 0;
    for (std::size_t line = 0; line < image.filter().size(); line++)
        for (int bit = 0; bit < 512; bit++) {
            __u64& word = image.filter()[line].word[bit / 64];
            word ^= std::uint64_t{1} << (bit % 64);
            image.seal();
            if (image.check("x.img")) (line == 0 ? most : accepted)++;
            word ^= std::uint64_t{1} << (bit % 64);
        }
    EXPECT_EQ(accepted, expected);
    EXPECT_GT(expected, 0U);
    // Secrets of words that such keys lack, and the number of keys that there is room for.
    EXPECT_GE(most, 128U);
    EXPECT_LE(most, 128U + 32U);
    image.seal();
    EXPECT_TRUE(image.check("x.img"));
}

TEST_F(ExactWideContent, WithAWrongRecordIsRefusedWithItsPlace) {
    const std::uint32_t at = place(true);
    const sieve_key key = records().key(at);
    sieve_key other = key;
    other.word[3] ^= 1;
    records().write(at, other);
    refused(text(at));

    restore();
    other = key;
    other.word[4] |= sieve_transport_word(1, 0, 0);
    records().write(at, other);
    refused(text(at));

    restore();
    records().write_tag(at, records().tag(at) ^ 1);
    refused(text(at));

    restore();
    records().mark(at, true);
    refused(text(at));

    restore();
    const std::uint32_t free = place(false);
    records().write_tag(free, SIEVE_RECORDS_LEFT);
    refused(text(free));

    restore();
    records().write_tag(at, 0);
    refused();
}

TEST_F(ExactWideContent, WithTwoCopiesOfAKeyIsRefused) {
    for (std::uint32_t at = 0; at < records().places(); at++) {
        if (records().tag(at) == 0) continue;
        const sieve_key key = records().key(at);
        const sieve_record_place where = sieve_records_locate(&records().header(), &key);
        for (const std::uint32_t row : {where.first, where.second})
            for (std::uint32_t i = 0; i < SIEVE_RECORDS_IN_TAGGED_ROW; i++) {
                const std::uint32_t free = row * SIEVE_RECORDS_IN_TAGGED_ROW + i;
                if (records().tag(free) != 0) continue;
                records().write(free, key);
                records().write_tag(free, where.tag);
                return refused();
            }
    }
    FAIL() << "no row has room";
}

// Four other keys of its tag come before it, so that lookups do not get to it.
TEST_F(ExactWideContent, WithAKeyThatNoLookupFindsIsRefused) {
    std::mt19937_64 random(8);
    KeySet one(pair), same(pair);
    one.add(random_flow(random));
    image = built_of(one, 8).image;
    const sieve_records& header = records().header();
    const std::uint32_t tag = 77;
    while (same.size() < 5) {
        KeySet drawn(pair);
        drawn.add(random_flow(random));
        const sieve_key key = drawn.at(0);
        const sieve_record_place where = sieve_records_locate(&header, &key);
        if (where.tag == tag && where.first == 0) same.add(key);
    }
    for (std::uint32_t place = 0; place < records().places(); place++) records().write_tag(place, 0);
    constexpr std::uint32_t places[] = {0, 4, 8, 12, 15}; // in the order in which lookups read them
    for (std::size_t i = 0; i < std::size(places); i++) {
        records().write(places[i], same.at(i));
        records().write_tag(places[i], tag);
    }
    ASSERT_TRUE(records().find(same.at(3)));
    ASSERT_FALSE(records().find(same.at(4)));
    refused(text(15));
}

TEST_F(ExactWideContent, WithAnotherHeaderIsRefused) {
    const std::function<void(sieve_records&)> faults[] = {
        [](sieve_records& h) { h.magic++; },       [](sieve_records& h) { h.words = 3; },
        [](sieve_records& h) { h.tagged = 2; },    [](sieve_records& h) { h.tagged = 0; },
        [](sieve_records& h) { h.fields = 0; },    [](sieve_records& h) { h.fields |= SIEVE_FIELD_SPORT; },
        [](sieve_records& h) { h.prefixes = 1; },  [](sieve_records& h) { h.rows += 2; },
        [](sieve_records& h) { h.rows = 0; },      [](sieve_records& h) { h.most = 100'000; },
        [](sieve_records& h) { h.most = 199; },    [](sieve_records& h) { h.hash_key[2]++; },
        [](sieve_records& h) { h.unsettled = 1; },
    };
    for (const auto& change : faults) {
        restore();
        change(records().header());
        refused();
    }
    const std::function<void(sieve_lookup&)> lookups[] = {
        [](sieve_lookup& l) { l.hashes = 1; },    [](sieve_lookup& l) { l.alpha = 1; },
        [](sieve_lookup& l) { l.probes = 1; },    [](sieve_lookup& l) { l.shard_bits = 1; },
        [](sieve_lookup& l) { l.choices = 3; },   [](sieve_lookup& l) { l.buckets--; },
        [](sieve_lookup& l) { l.buckets = 1; },   [](sieve_lookup& l) { l.fields |= SIEVE_FIELD_SPORT; },
        [](sieve_lookup& l) { l.hash_key[3]++; },
    };
    for (const auto& change : lookups) {
        restore();
        change(image.lookup());
        refused();
    }
    restore();
    image.file().key_sum[0]++;
    refused();
}

TEST_F(ExactWideContent, OfAnySortIsSurvived) {
    std::mt19937_64 random(9);
    const ExactKind& kind = *kind_of(image.lookup()).exact();
    for (int round = 0; round < 30; round++) {
        std::vector<sieve_line> lines(image.filter().begin(), image.filter().end());
        for (std::size_t line = random() % 2; line < lines.size(); line++)
            if (random() % 4 == 0)
                for (auto& word : lines[line].word) word = random();
        for (int i = 0; i < 100; i++) (void)kind.holds_key(image.lookup(), random_flow(random), lines);
        EXPECT_FALSE(kind.add_up(image.lookup(), lines));
        EXPECT_FALSE(kind.list(image.lookup(), lines));
        EXPECT_FALSE(kind.for_each_range(image.lookup(), lines, [](const AddressRange&) {}));
    }
}

// --- changes -----------------------------------------------------------------------------------------------

// An image whose lines are memory that a child may change.
class Live {
  public:
    explicit Live(const Image& image) : lines_(image.filter().size()), lookup_(image.lookup()) {
        const std::size_t bytes = sizeof(sieve_file) + lines_ * sizeof(sieve_line);
        memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(memory_, MAP_FAILED);
        std::copy(image.filter().begin(), image.filter().end(), filter().begin());
        file() = image.file();
    }
    ~Live() { ::munmap(memory_, sizeof(sieve_file) + lines_ * sizeof(sieve_line)); }
    Live(const Live&) = delete;
    Live& operator=(const Live&) = delete;

    [[nodiscard]] sieve_file& file() const { return *static_cast<sieve_file*>(memory_); }
    [[nodiscard]] std::span<sieve_line> filter() const {
        return {reinterpret_cast<sieve_line*>(static_cast<sieve_file*>(memory_) + 1), lines_};
    }
    [[nodiscard]] const sieve_lookup& lookup() const { return lookup_; }
    [[nodiscard]] std::unique_ptr<ChangeableTable> open() const {
        auto table = kind_of(lookup_).exact()->open_table(lookup_, file(), filter());
        EXPECT_TRUE(table) << table.error().message;
        return std::move(*table);
    }
    [[nodiscard]] bool holds(const sieve_key& key) const {
        return kind_of(lookup_).exact()->holds_key(lookup_, key, filter());
    }
    void expect(const std::set<Words>& members) const {
        const auto listed = kind_of(lookup_).exact()->list(lookup_, filter());
        ASSERT_TRUE(listed) << listed.error().message;
        EXPECT_EQ(words_of(*listed), members);
        expect_intact();
    }
    void expect_intact() const {
        const auto sum = kind_of(lookup_).exact()->add_up(lookup_, filter());
        ASSERT_TRUE(sum) << sum.error().message;
        EXPECT_EQ(sum->keys, file().keys);
        EXPECT_EQ(sum->sum, (HashSum{.locate = file().key_sum[0], .test = file().key_sum[1]}));
    }

  private:
    std::size_t lines_;
    sieve_lookup lookup_;
    void* memory_ = nullptr;
};

KeySet of_words(const std::set<Words>& all, std::uint32_t fields) {
    KeySet keys(fields);
    for (const Words& words : all) {
        sieve_key key{};
        std::copy(words.begin(), words.end(), std::begin(key.word));
        keys.add(key);
    }
    return keys;
}

Status no_wait() {
    return {};
}

TEST(ExactWideLive, FollowsASet) {
    std::mt19937_64 random(10);
    const KeySet start = random_flows(300, SIEVE_FIELD_ALL, 10);
    std::set<Words> members = words_of(start);
    const Live live(built_of(start, 200).image);
    const auto table = live.open();
    std::uint64_t waits = 0, changes = 0;
    for (int round = 0; round < 300; round++) {
        std::set<Words> out, in;
        for (const Words& words : members)
            if (random() % 10 == 0) out.insert(words);
        KeySet drawn(SIEVE_FIELD_ALL);
        while (in.size() < 30) {
            drawn.clear();
            drawn.add(random_flow(random));
            if (!table->contains(drawn.at(0))) in.insert(std::to_array(drawn.at(0).word));
        }
        const std::uint64_t before = waits;
        const auto did = table->change(of_words(out, SIEVE_FIELD_ALL), of_words(in, SIEVE_FIELD_ALL), [&] {
            // Those that are to go match no longer, and their records still lie there.
            for (const Words& words : out) {
                EXPECT_FALSE(live.holds(of_words({words}, SIEVE_FIELD_ALL).at(0)));
            }
            waits++;
            return Status();
        });
        ASSERT_TRUE(did) << did.error().message;
        EXPECT_EQ(waits - before, out.empty() ? 0U : 1U) << "a place was used again too early";
        EXPECT_EQ(did->removed, out.size());
        EXPECT_EQ(did->added + did->full.size(), in.size());
        for (const Words& words : out) members.erase(words);
        members.insert(in.begin(), in.end());
        for (const sieve_key& key : did->full) members.erase(std::to_array(key.word));
        changes += did->removed + did->added;
        if (round % 20 == 0) live.expect(members);
    }
    live.expect(members);
    EXPECT_EQ(live.file().changes, changes);
    EXPECT_FALSE(table->unsettled());
}

TEST(ExactWideLive, KnowsWhatItHasRoomFor) {
    const KeySet keys = random_flows(1'000, SIEVE_FIELD_ALL, 11);
    const Live live(built_of(keys, 500).image);
    const auto table = live.open();
    EXPECT_TRUE(table->has_room_for(random_flows(500, SIEVE_FIELD_ALL, 12)));
    EXPECT_FALSE(table->has_room_for(random_flows(501, SIEVE_FIELD_ALL, 12)));
    const auto did = table->change(KeySet(SIEVE_FIELD_ALL), random_flows(500, SIEVE_FIELD_ALL, 12), no_wait);
    ASSERT_TRUE(did);
    EXPECT_EQ(did->added, 500U) << "there was room for them";
    EXPECT_FALSE(table->has_room_for(random_flows(1, SIEVE_FIELD_ALL, 13)));
    // Far beyond it some find no place, are named, and are no members.
    const auto many =
        table->change(KeySet(SIEVE_FIELD_ALL), random_flows(2'000, SIEVE_FIELD_ALL, 14), no_wait);
    ASSERT_TRUE(many);
    EXPECT_GT(many->full.size(), 0U);
    for (const sieve_key& key : many->full) EXPECT_FALSE(live.holds(key));
    // A table without room still takes keys where others went.
    const Live full(built_of(keys).image);
    EXPECT_FALSE(full.open()->has_room_for(random_flows(1, SIEVE_FIELD_ALL, 13)));
}

TEST(ExactWideLive, AWaitThatFailsLeavesItUnsettled) {
    const KeySet keys = random_flows(100, pair, 15);
    const Live live(built_of(keys, 100).image);
    const auto table = live.open();
    KeySet one(pair);
    one.add(keys.at(3));
    const auto did =
        table->change(one, random_flows(1, pair, 16), [] { return Status(kernel_refused("no")); });
    ASSERT_FALSE(did);
    EXPECT_EQ(did.error().kind, ErrorKind::unfinished);
    EXPECT_TRUE(table->unsettled());
    EXPECT_FALSE(live.holds(keys.at(3)));
    const auto again = live.open();
    ASSERT_TRUE(again->settle(no_wait));
    EXPECT_FALSE(again->unsettled());
    EXPECT_EQ(live.file().keys, 99U);
    live.expect_intact();
}

// A writer is killed at any store: no member that it does not change is missing, and the next one settles it.
TEST(ExactWideLive, AWriterThatIsKilledMissesNoMember) {
    constexpr std::size_t stable = 200, others = 200;
    const KeySet keys = random_flows(stable + others, SIEVE_FIELD_ALL, 17);
    const Live live(built_of(keys, 200).image);
    std::mt19937_64 random(18);
    int unsettled = 0;
    for (int death = 0; death < 100; death++) {
        const std::uint64_t seed = random();
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            std::mt19937_64 own(seed);
            const auto table = live.open();
            for (;;) {
                KeySet out(SIEVE_FIELD_ALL), in(SIEVE_FIELD_ALL);
                for (int i = 0; i < 8; i++) {
                    const sieve_key key = keys.at(stable + 8 * (own() % (others / 8)) + i);
                    (table->contains(key) ? out : in).add(key);
                }
                (void)table->change(out, in, no_wait);
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 2000));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        for (std::size_t i = 0; i < stable; i++) ASSERT_TRUE(live.holds(keys.at(i))) << death;
        const auto table = live.open();
        if (table->unsettled()) {
            unsettled++;
            const Status settled = table->settle(no_wait);
            ASSERT_TRUE(settled) << settled.error().message;
        }
        live.expect_intact();
        if (HasFatalFailure()) return;
        ASSERT_LE(live.file().keys, stable + others);
        ASSERT_GE(live.file().keys, stable);
    }
    EXPECT_GT(unsettled, 0);
}

} // namespace
} // namespace sieve
