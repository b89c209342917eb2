// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Records against plain sets: built in every size, listed, changed one by one, killed at any point.
#include "libsieve/filters/records.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/filters/build_records.hpp"
#include "libsieve/util/random/splitmix64.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

using Words = std::array<__u64, SIEVE_KEY_WORDS>;
constexpr std::uint32_t flows = SIEVE_RECORD_ALL;

Words words_of(const sieve_key& key) {
    return std::to_array(key.word);
}

sieve_key key_of(std::uint32_t words, std::uint64_t number) {
    SplitMix64 random(number);
    sieve_key key{};
    if ((words & SIEVE_RECORD_SRC) != 0) key.word[0] = random(), key.word[1] = random();
    if ((words & SIEVE_RECORD_DST) != 0) key.word[2] = random(), key.word[3] = random();
    if ((words & SIEVE_RECORD_LAST) != 0) key.word[4] = number;
    return key;
}

std::vector<sieve_key> keys_of(std::uint32_t words, std::uint64_t count) {
    std::vector<sieve_key> keys(count);
    for (std::uint64_t i = 0; i < count; i++) keys[i] = key_of(words, i);
    return keys;
}

// A set whose keys have these words.
RecordsOrder order_of(std::uint32_t words, std::uint64_t room = 0, std::uint64_t seed = 1) {
    const auto field = [&](std::uint32_t word, std::uint32_t field) {
        return (words & word) != 0 ? field : 0;
    };
    return {.fields = field(SIEVE_RECORD_SRC, SIEVE_FIELD_SRC) | field(SIEVE_RECORD_DST, SIEVE_FIELD_DST) |
                      field(SIEVE_RECORD_LAST, SIEVE_FIELD_PROTO),
            .room = room,
            .seed = seed};
}

HugeArray<sieve_line> built(std::span<const sieve_key> keys, std::uint32_t words, std::uint64_t room = 0,
                            std::uint64_t seed = 1) {
    auto lines = build_records(keys, order_of(words, room, seed));
    EXPECT_TRUE(lines) << lines.error().message;
    return std::move(*lines);
}

Records view(HugeArray<sieve_line>& lines) {
    return Records({lines.data(), lines.size()});
}

// In order, each once.
std::vector<Words> listed(const Records& records) {
    std::vector<Words> all;
    for (std::uint32_t place = 0; place < records.places(); place++)
        if (records.is_used(place)) all.push_back(words_of(records.key(place)));
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "listed twice";
    return all;
}

// Every record is where packets look for it, and no line has a tag more often than packets look at.
void expect_sound(const Records& records) {
    for (std::uint32_t place = 0; place < records.places(); place++) {
        if (!records.is_used(place)) continue;
        const sieve_key key = records.key(place);
        ASSERT_EQ(records.find(key), place);
        if (records.header().tagged == 0) continue;
        const std::uint32_t tag = records.tag(place) & SIEVE_RECORDS_TAG;
        ASSERT_LE(std::popcount(records.with_tag(place / SIEVE_RECORDS_IN_TAGGED_ROW, tag)),
                  SIEVE_RECORDS_SAME_TAG);
    }
}

// By the words of their keys, and by whether they have room for more, which addresses without it do not tag.
class RecordsOfWords : public testing::TestWithParam<std::tuple<std::uint32_t, bool>> {};

TEST_P(RecordsOfWords, HoldExactlyTheirKeysInEverySize) {
    const auto [words, has_room] = GetParam();
    const bool address = words == SIEVE_RECORD_SRC || words == SIEVE_RECORD_DST;
    std::vector<std::uint64_t> sizes = {0,  1,  2,  3,  4,  5,   8,    15,     16,
                                        17, 31, 32, 33, 64, 100, 1000, 10'000, 100'000};
    if (!has_room && (words == SIEVE_RECORD_SRC || words == flows)) sizes.push_back(1'000'000);
    for (const std::uint64_t size : sizes) {
        const std::vector<sieve_key> keys = keys_of(words, size);
        auto lines = built(keys, words, has_room ? 10 + size / 2 : 0);
        const Records records = view(lines);
        ASSERT_EQ(Records::fault({lines.data(), lines.size()}), "");
        ASSERT_EQ(records.header().tagged, address && !has_room && size > 0 ? 0 : 1);
        for (const sieve_key& key : keys) {
            const auto place = records.find(key);
            ASSERT_TRUE(place) << size;
            ASSERT_EQ(words_of(records.key(*place)), words_of(key));
        }
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(size + 10, 20'000); i++)
            ASSERT_FALSE(records.find(key_of(words, size + i))) << size;
        // A stranger that differs in one bit, in each bit.
        for (int bit = 0; !keys.empty() && bit < 64 * SIEVE_KEY_WORDS; bit++) {
            sieve_key other = keys.front();
            other.word[bit / 64] ^= std::uint64_t{1} << (bit % 64);
            const bool member = words == SIEVE_RECORD_LAST && bit >= 256 && other.word[4] < size;
            ASSERT_EQ(records.find(other).has_value(), member) << bit;
        }
        if (size > 100'000) continue;
        std::vector<Words> wanted;
        for (const sieve_key& key : keys) wanted.push_back(words_of(key));
        std::sort(wanted.begin(), wanted.end());
        EXPECT_EQ(listed(records), wanted);
        expect_sound(records);
    }
}

INSTANTIATE_TEST_SUITE_P(All, RecordsOfWords,
                         testing::Combine(testing::Range(1U, SIEVE_RECORD_ALL + 1U), testing::Bool()));

TEST(Records, TakeAFewBytesMoreThanTheKeys) {
    const auto bytes = [](std::uint32_t words, std::uint64_t keys) {
        return static_cast<double>(record_lines_for(keys, order_of(words)) * sizeof(sieve_line)) /
               static_cast<double>(keys);
    };
    for (const std::uint64_t keys : {10'000U, 1'000'000U, 100'000'000U}) {
        EXPECT_LE(bytes(SIEVE_RECORD_SRC, keys), 16.7);
        EXPECT_LE(bytes(SIEVE_RECORD_SRC | SIEVE_RECORD_LAST, keys), 27.5);
        EXPECT_LE(bytes(flows, keys), 44);
    }
}

TEST(Records, TheSameSeedGivesTheSameLines) {
    const auto keys = keys_of(flows, 5000);
    const auto a = built(keys, flows, 0, 5), b = built(keys, flows, 0, 5), c = built(keys, flows, 0, 6);
    const auto same = [](const auto& x, const auto& y) {
        return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(sieve_line)) == 0;
    };
    EXPECT_TRUE(same(a, b));
    EXPECT_FALSE(same(a, c));
}

TEST(Records, RepeatedKeysCountOnce) {
    auto keys = keys_of(flows, 3000);
    keys.insert(keys.end(), keys.begin(), keys.begin() + 1000);
    auto lines = built(keys, flows);
    EXPECT_EQ(listed(view(lines)).size(), 3000U);
    std::vector<sieve_key> addresses(1000, key_of(SIEVE_RECORD_DST, 1));
    lines = built(addresses, SIEVE_RECORD_DST);
    EXPECT_EQ(listed(view(lines)).size(), 1U);
}

TEST(Records, RefuseAKeyWithAWordThatIsNotStored) {
    for (int word = 2; word < SIEVE_KEY_WORDS; word++) {
        auto keys = keys_of(SIEVE_RECORD_SRC, 100);
        keys[57].word[word] = 1;
        expect_error(build_records(keys, order_of(SIEVE_RECORD_SRC, word % 2)), ErrorKind::bad_input);
    }
}

// Keys that somebody chose without knowing the secrets find room in the first size, as random ones do.
TEST(Records, HostileKeysFindRoom) {
    std::mt19937_64 random(3);
    std::uint64_t basis[16];
    for (std::uint64_t& vector : basis) vector = random();
    constexpr std::uint64_t count = 60'000;
    const std::vector<std::function<std::uint64_t(std::uint64_t)>> forms = {
        [](std::uint64_t i) { return i; },
        [](std::uint64_t i) { return i << 8; },
        [](std::uint64_t i) { return i << 32; },
        [](std::uint64_t i) { return i << 48; },
        [](std::uint64_t i) { return i * 65537; },
        [](std::uint64_t i) { return i * 0x01000193; },
        [&](std::uint64_t i) { // a subspace over GF(2)
            std::uint64_t sum = 0;
            for (int bit = 0; bit < 16; bit++) sum ^= (i >> bit & 1) != 0 ? basis[bit] : 0;
            return sum;
        },
    };
    for (std::size_t form = 0; form < forms.size(); form++)
        for (std::uint64_t seed = 1; seed <= 5; seed++) {
            std::vector<sieve_key> keys(count);
            for (std::uint64_t i = 0; i < count; i++) keys[i].word[seed % 2] = forms[form](i);
            const auto lines = built(keys, SIEVE_RECORD_SRC, 0, seed);
            EXPECT_EQ(lines.size(), record_lines_for(count, order_of(SIEVE_RECORD_SRC))) << form;
            for (sieve_key& key : keys) key.word[4] = key.word[0] >> 32;
            const auto tagged = built(keys, flows, 0, seed);
            EXPECT_EQ(tagged.size(), record_lines_for(count, order_of(flows))) << form;
        }
}

TEST(Records, EveryFieldOfADamagedHeaderIsFound) {
    auto lines = built(keys_of(flows, 1000), flows);
    const std::span<const sieve_line> all(lines.data(), lines.size());
    const sieve_records good = view(lines).header();
    const auto expect = [&](const char* why) {
        EXPECT_NE(Records::fault(all).find(why), std::string::npos) << Records::fault(all);
        view(lines).header() = good;
    };
    EXPECT_EQ(Records::fault(all), "");
    EXPECT_EQ(Records::fault({}), "no lines");
    view(lines).header().magic ^= 1;
    expect("magic");
    view(lines).header().words = 3;
    expect("words 0x3");
    view(lines).header().fields = 0;
    expect("fields 0x0");
    view(lines).header().fields = 32;
    expect("fields 0x20");
    view(lines).header().fields = SIEVE_FIELD_SRC;
    expect("words 0x7, expected 0x1");
    view(lines).header().prefixes = 2;
    expect("prefixes 2");
    view(lines).header().tagged = 2;
    expect("form 2");
    view(lines).header().tagged = 0;
    expect("plain form");
    view(lines).header().rows = 0;
    expect("0 rows");
    view(lines).header().rows++;
    expect("whole lines");
    view(lines).header().rows += 2;
    expect("expected");
    view(lines).header().rows = 0xfffffffe;
    expect("expected");
    view(lines).header().unsettled = 1;
    expect("did not come to its end");
    EXPECT_NE(Records::fault(all.first(all.size() - 1)), "");
}

// Keys come, are marked and go, in any order. The model is a map.
TEST(Records, ChangeAsAMapDoes) {
    for (const std::uint32_t words : {1U, 5U, flows}) { // addresses, their prefixes, flows
        std::mt19937_64 random(words);
        auto lines = built(keys_of(words, 100), words, 400);
        Records records = view(lines);
        std::map<Words, bool> model;
        for (std::uint64_t i = 0; i < 100; i++) model[words_of(key_of(words, i))] = false;
        std::uint64_t waits = 0;
        for (int change = 0; change < 60'000; change++) {
            const sieve_key key = key_of(words, random() % 600);
            const auto place = records.find(key);
            ASSERT_EQ(place.has_value(), model.contains(words_of(key)));
            if (!place) {
                if (model.size() >= 500) continue;
                auto added = records.add(key, change % 2 != 0);
                if (added == Records::Added::must_wait) {
                    waits++;
                    records.use_left();
                    added = records.add(key, change % 2 != 0);
                }
                ASSERT_EQ(added, Records::Added::done) << model.size();
                model[words_of(key)] = change % 2 != 0;
                continue;
            }
            ASSERT_EQ(records.is_marked(*place), model[words_of(key)]);
            if (random() % 2 == 0) {
                records.mark(*place, change % 3 == 0);
                model[words_of(key)] = change % 3 == 0;
            } else {
                records.remove(*place);
                model.erase(words_of(key));
            }
        }
        EXPECT_GT(waits, 10U) << "places were never short";
        std::vector<Words> wanted;
        for (const auto& [key, marked] : model) wanted.push_back(key); // a map's keys are in order
        EXPECT_EQ(listed(records), wanted);
        expect_sound(records);
    }
}

TEST(Records, HaveRoomForWhatWasAskedForAndAreFullSomeTime) {
    for (const std::uint64_t size : {0U, 100U, 10'000U}) {
        auto lines = built(keys_of(flows, size), flows, size / 2 + 1024);
        Records records = view(lines);
        std::uint64_t more = 0;
        while (records.add(key_of(flows, size + more), false) == Records::Added::done) more++;
        EXPECT_GE(more, size / 2 + 1024);
        EXPECT_LE(size + more, records.places());
        EXPECT_EQ(listed(records).size(), size + more) << "a key that found no room left a trace";
        expect_sound(records);
    }
}

// Packets look at four records at most, so a line has no tag more than twice, and none of these counts that a
// packet may still see.
TEST(Records, AThirdKeyOfATagWaitsOrIsRefused) {
    auto lines = built({}, flows, 20); // two rows
    Records records = view(lines);
    ASSERT_EQ(records.header().rows, 2U);
    std::vector<sieve_key> same; // in the same row, twice
    std::optional<sieve_record_place> all;
    for (std::uint64_t i = 0; same.size() < 3; i++) {
        const sieve_key key = key_of(flows, i);
        const sieve_record_place own = sieve_records_locate(&records.header(), &key);
        if (own.first != own.second) continue;
        if (!all) all = own;
        if (own.first == all->first && own.tag == all->tag) same.push_back(key);
    }
    ASSERT_EQ(records.add(same[0], false), Records::Added::done);
    ASSERT_EQ(records.add(same[1], true), Records::Added::done);
    EXPECT_EQ(records.add(same[2], false), Records::Added::full);
    EXPECT_TRUE(records.find(same[0]));
    EXPECT_TRUE(records.find(same[1]));
    EXPECT_FALSE(records.find(same[2]));
    records.remove(*records.find(same[0]));
    EXPECT_EQ(records.add(same[2], false), Records::Added::must_wait);
    records.use_left();
    EXPECT_EQ(records.add(same[2], false), Records::Added::done);
    EXPECT_TRUE(records.find(same[1]));
    EXPECT_TRUE(records.find(same[2]));
    // The builder: whatever secrets it draws, three keys that collide under them go elsewhere.
    auto again = build_records(same, order_of(flows));
    ASSERT_TRUE(again);
    for (const sieve_key& key : same) EXPECT_TRUE(view(*again).find(key));
}

// A writer dies at any point: what stays is whole, and no other key is missed.
TEST(Records, AWriterThatIsKilledLeavesThemWhole) {
    constexpr std::uint64_t stable = 200, others = 200;
    const auto built_lines = built(keys_of(flows, stable + others), flows, 200);
    const std::size_t bytes = built_lines.size() * sizeof(sieve_line);
    void* shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    std::memcpy(shared, built_lines.data(), bytes);
    Records records({static_cast<sieve_line*>(shared), built_lines.size()});
    std::mt19937_64 random(17);
    for (int death = 0; death < 100; death++) {
        const std::uint64_t seed = random();
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            for (std::uint64_t i = seed;; i = i * 6364136223846793005 + 1442695040888963407) {
                const sieve_key key = key_of(flows, stable + (i >> 33) % others);
                if (const auto place = records.find(key)) {
                    if ((i >> 60) % 2 == 0)
                        records.remove(*place);
                    else
                        records.mark(*place, (i >> 61) % 2 == 0);
                } else if (records.add(key, (i >> 62) % 2 == 0) != Records::Added::done) {
                    records.use_left();
                }
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 2000));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        for (std::uint64_t i = 0; i < stable; i++) ASSERT_TRUE(records.find(key_of(flows, i))) << death;
        expect_sound(records);
        const std::vector<Words> there = listed(records);
        for (std::uint64_t i = 0; i < others; i++) {
            const sieve_key key = key_of(flows, stable + i);
            ASSERT_EQ(records.find(key).has_value(),
                      std::binary_search(there.begin(), there.end(), words_of(key)));
        }
        ASSERT_LE(there.size(), stable + others);
    }
    ::munmap(shared, bytes);
}

} // namespace
} // namespace sieve
