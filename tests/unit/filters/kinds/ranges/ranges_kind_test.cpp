// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `ranges` against a scan of the list, and against the model of its format.
#include "libsieve/filters/kinds/ranges/ranges_kind.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <xxhash.h>

#include <sieve/ranges.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/prefixes/address_set.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "model/image_model.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

using List = std::vector<AddressRange>;

uint128 v4(std::uint32_t address) {
    return sieve_v4_mapped(address);
}

AddressRange prefix(uint128 address, std::uint32_t length) { // in bits of 128
    const uint128 host = length == 0 ? ~uint128{0} : (uint128{1} << (128 - length)) - 1;
    return {address & ~host, address | host};
}

sieve_key key_of(uint128 address, std::uint32_t fields = SIEVE_FIELD_SRC) {
    sieve_key key{};
    key.word[fields == SIEVE_FIELD_SRC ? 0 : 2] = static_cast<std::uint64_t>(address >> 64);
    key.word[fields == SIEVE_FIELD_SRC ? 1 : 3] = static_cast<std::uint64_t>(address);
    return key;
}

/// The oracle. A range of one family means addresses of this family only.
bool listed(const List& list, uint128 address) {
    return std::any_of(list.begin(), list.end(), [&](const AddressRange& range) {
        const bool same = (is_ipv4(range.first) && is_ipv4(range.last)) == is_ipv4(address);
        return same && range.first <= address && address <= range.last;
    });
}

Image image_of(const List& list, std::uint32_t fields = SIEVE_FIELD_SRC) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_RANGES;
    options.seed = 1;
    options.trials = 1'000;
    auto built = build_set(KeySet(fields), list, options, {});
    if (!built) {
        ADD_FAILURE() << built.error().message;
        std::abort();
    }
    EXPECT_EQ(built->report.expected_fpr, 0);
    EXPECT_EQ(built->report.predicted_fpr, 0);
    EXPECT_EQ(built->report.measured_hits, 0U);
    return std::move(built->image);
}

/// What the filter lists, or nothing if it cannot.
std::optional<List> listing(const Image& image) {
    List all;
    const Status done = ranges_kind.for_each_range(image.lookup(), image.filter(),
                                                   [&](const AddressRange& range) { all.push_back(range); });
    return done ? std::optional(all) : std::nullopt;
}

/// The same addresses as the list's, each once.
void lists(const Image& image, const List& list) {
    const std::optional<List> found = listing(image);
    ASSERT_TRUE(found);
    const AddressSet wanted = address_set_of(list);
    const AddressSet merged = address_set_of(*found);
    for (const int family : {SIEVE_FAMILY_V4, SIEVE_FAMILY_V6}) {
        EXPECT_EQ(merged.members[family], wanted.members[family]);
        uint128 addresses = 0;
        for (const AddressRange& range : *found)
            if (family_of(range) == family) addresses += range.last - range.first + 1;
        for (const AddressRange& range : wanted.members[family]) addresses -= range.last - range.first + 1;
        EXPECT_EQ(static_cast<std::uint64_t>(addresses | addresses >> 64), 0U) << "listed twice";
    }
}

/// Asks at and around every edge, and at random.
void answers_like(const List& list, std::mt19937_64& random) {
    const Image image = image_of(list);
    lists(image, list);
    const model::FilterImage model(
        {reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()});
    const auto ask = [&](uint128 address) {
        const sieve_key key = key_of(address);
        ASSERT_EQ(model.contains({key.word[0], key.word[1], 0, 0, 0}), listed(list, address))
            << "the model: " << std::hex << key.word[0] << " " << key.word[1];
        ASSERT_EQ(image.contains(key), listed(list, address))
            << std::hex << static_cast<std::uint64_t>(address >> 64) << " "
            << static_cast<std::uint64_t>(address) << ", " << list.size() << " ranges";
    };
    for (const AddressRange& range : list) {
        const uint128 span = range.last - range.first;
        const uint128 draw = address_number(random(), random());
        for (const uint128 address :
             {range.first, range.last, range.first - 1, range.last + 1,
              range.first + (span == ~uint128{0} ? draw : draw % (span + 1)),
              range.first ^ (uint128{1} << (random() % 32)), range.last ^ (uint128{1} << (random() % 128))})
            ask(address);
    }
    for (int i = 0; i < 300; i++) {
        ask(v4(static_cast<std::uint32_t>(random())));
        ask(address_number(random(), random()));
        ask(address_number(0x2001000000000000 | (random() >> 16), random()));
    }
    for (const uint128 address :
         {v4(0), v4(0xffffffff), v4(0) - 1, v4(0xffffffff) + 1, uint128{0}, ~uint128{0}})
        ask(address);
}

TEST(Ranges, HoldTheEdgesOfTheSpace) {
    std::mt19937_64 random(1);
    const AddressRange all_v6{0, ~uint128{0}};
    const List lists[] = {
        {all_ipv4},
        {all_v6},
        {all_ipv4, all_v6},
        {{v4(0), v4(0)}},
        {{v4(0xffffffff), v4(0xffffffff)}},
        {{v4(0), v4(0)}, {v4(0xffffffff), v4(0xffffffff)}},
        {{v4(1), v4(0xfffffffe)}},
        {{0, 0}},
        {{~uint128{0}, ~uint128{0}}},
        {{0, address_number(0, ~0ULL)}},
        {{address_number(~0ULL, 0), ~uint128{0}}},
        {{1, ~uint128{0} - 1}},
        // IPv6 addresses that look like IPv4 ones are not IPv4.
        {{address_number(0, 0), address_number(0, ~0ULL)}, {v4(7), v4(9)}},
        {prefix(v4(0), 97), prefix(v4(0x80000000), 97)},
        {prefix(address_number(0x8000000000000000, 0), 1)},
        {prefix(0, 1), {v4(5), v4(5)}},
        {prefix(address_number(0x7fffffffffffffff, 0), 64),
         prefix(address_number(0x8000000000000000, 0), 64)},
        {{address_number(1, ~0ULL), address_number(2, 0)}},
    };
    for (const List& list : lists) answers_like(list, random);
}

/// Whoever made the lines: the listing and a lookup agree, or there is no listing.
TEST(Ranges, ListWhatALookupFindsInAnyLines) {
    std::mt19937_64 random(3);
    int listed_rounds = 0;
    for (int round = 0; round < 400; round++) {
        List list;
        for (int i = 0; i < 300; i++) {
            list.push_back(prefix(v4(0x0a000000 | static_cast<std::uint32_t>(random() & 0xffff)),
                                  120 + static_cast<std::uint32_t>(random() % 9)));
            list.push_back(prefix(address_number(0x20010db800000000 | (random() & 0xfffff), random()),
                                  40 + static_cast<std::uint32_t>(random() % 89)));
        }
        Image image = image_of(list);
        const std::span<sieve_line> lines = image.filter();
        for (std::uint64_t damage = random() % 20; damage > 0; damage--) {
            sieve_line& line = lines[random() % lines.size()];
            if (random() % 2 == 0)
                line.word[random() % SIEVE_LINE_WORDS] ^= std::uint64_t{1} << random() % 64;
            else
                line = lines[random() % lines.size()];
        }
        const std::optional<List> found = listing(image);
        if (!found) continue;
        listed_rounds++;
        const auto agrees = [&](uint128 address) {
            const bool is_listed = std::ranges::any_of(*found, [&](const AddressRange& range) {
                return (family_of(range) == SIEVE_FAMILY_V4) == is_ipv4(address) && range.first <= address &&
                       address <= range.last;
            });
            ASSERT_EQ(image.contains(key_of(address)), is_listed)
                << round << ": " << std::hex << static_cast<std::uint64_t>(address >> 64) << " "
                << static_cast<std::uint64_t>(address);
        };
        for (std::size_t i = 0; i < 100 && !found->empty(); i++) {
            const AddressRange& range = (*found)[random() % found->size()];
            for (const uint128 address : {range.first, range.last, range.first - 1, range.last + 1})
                agrees(address);
            agrees(v4(0x0a000000 | static_cast<std::uint32_t>(random() & 0x1ffff)));
            agrees(address_number(0x20010db800000000 | (random() & 0x1fffff), random()));
        }
    }
    EXPECT_GT(listed_rounds, 100);
}

/// Lists of every mix of lengths, crowded and scattered, so that all depths and bitmaps occur.
TEST(Ranges, AnswerLikeAScanOfTheList) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 150; round++) {
        List list;
        const std::size_t count = std::size_t{1} << (random() % 10);
        const std::uint32_t crowd4 = static_cast<std::uint32_t>(random() % 33); // bits that all share
        const std::uint32_t crowd6 = static_cast<std::uint32_t>(random() % 129);
        const std::uint32_t shortest = static_cast<std::uint32_t>(random() % 25);
        const std::uint32_t base4 = static_cast<std::uint32_t>(random());
        const uint128 base6 = address_number(random(), random());
        for (std::size_t i = 0; i < count; i++) {
            const bool ipv4 = round % 3 == 0 || (round % 3 == 1 && i % 2 == 0);
            const std::uint32_t host4 = crowd4 == 32 ? 0 : ~0U >> crowd4;
            const uint128 host6 = crowd6 == 128 ? 0 : ~uint128{0} >> crowd6;
            const uint128 at = ipv4 ? v4((base4 & ~host4) | (static_cast<std::uint32_t>(random()) & host4))
                                    : (base6 & ~host6) | (address_number(random(), random()) & host6);
            if (!ipv4 && is_ipv4(at)) continue;
            if (random() % 4 == 0) {
                const uint128 top = ipv4 ? v4(0xffffffff) : ~uint128{0};
                const uint128 size = uint128{random()} >> (random() % 64);
                list.push_back({at, at + std::min(size, top - at)});
            } else {
                list.push_back(
                    ipv4 ? prefix(at, 96 + shortest + static_cast<std::uint32_t>(random() % (33 - shortest)))
                         : prefix(at, 4 * shortest +
                                          static_cast<std::uint32_t>(random() % (129 - 4 * shortest))));
            }
        }
        if (list.empty()) continue;
        answers_like(list, random);
        if (HasFailure()) return;
    }
}

/// Depths that only large crowds reach. The oracle is a bit for each number.
TEST(Ranges, HoldCrowds) {
    std::mt19937_64 random(3);
    for (const int part : {SIEVE_RANGES_IPV4, SIEVE_RANGES_IPV6, SIEVE_RANGES_FINE}) {
        const auto number = [&](std::uint32_t i) {
            return part == SIEVE_RANGES_IPV4 ? v4(0xc0000000 + i)
                   : part == SIEVE_RANGES_IPV6
                       ? address_number(0xfd00000000000000 + i, 0)
                       : address_number(0xfd00000000000000, 0x7ffffffffff80000ULL + i);
        };
        constexpr std::uint32_t space = 1U << 20;
        std::vector<bool> member(space);
        List list;
        // A stranger far away forces large cells.
        list.push_back(part == SIEVE_RANGES_IPV4 ? AddressRange{v4(3), v4(3)}
                                                 : prefix(address_number(3, 0), 64));
        for (std::uint32_t i = 0; i < space; i += 1 + static_cast<std::uint32_t>(random() % 40)) {
            member[i] = true;
            list.push_back(part == SIEVE_RANGES_IPV6 ? prefix(number(i), 64)
                                                     : AddressRange{number(i), number(i)});
        }
        const Image image = image_of(list, SIEVE_FIELD_DST);
        for (std::uint32_t i = 0; i < space; i++)
            ASSERT_EQ(image.contains(key_of(number(i), SIEVE_FIELD_DST)), member[i]) << part << " " << i;
    }
}

TEST(Ranges, AreTheSameAgain) {
    const List list{prefix(v4(0x0a000000), 104), prefix(address_number(0x20010db800000000, 0), 32)};
    const Image one = image_of(list);
    const Image two = image_of({list[1], list[0], list[1]});
    ASSERT_EQ(one.filter().size(), two.filter().size());
    EXPECT_EQ(std::memcmp(one.filter().data(), two.filter().data(), one.filter().size_bytes()), 0);
    EXPECT_EQ(one.file().keys, 2U);
    EXPECT_NEAR(rate_from_bits(one.file().covered[SIEVE_FAMILY_V4]), 1.0 / 256, 1e-12);
}

/// All three parts, leaves, bitmaps and trees. CONTRIBUTING.md says how to change golden bytes.
TEST(Ranges, LinesAreGolden) {
    std::mt19937_64 random(5);
    List list;
    for (std::uint32_t i = 0; i < 60; i++)
        list.push_back(prefix(v4(0x0a000000 | static_cast<std::uint32_t>(random() & 0xfffff)), 122 + i % 7));
    for (int i = 0; i < 200; i++)
        list.push_back(prefix(v4(0xc0000000 | static_cast<std::uint32_t>((random() & 0x1ff) << 8)), 120));
    for (int i = 0; i < 80; i++) {
        const std::uint64_t upper = 0x2a00000000000000 | (random() & 0xffff);
        list.push_back(prefix(address_number(upper, random()), i % 2 == 0 ? 64 : 128));
    }
    const Image image = image_of(list);
    EXPECT_EQ(XXH3_64bits(image.filter().data(), image.filter().size_bytes()), 2303233973326501907U);
}

TEST(Ranges, RefuseWhatTheyCannotHold) {
    const auto refused = [](const std::function<void(BuildOptions&)>& change, KeySet keys) {
        BuildOptions options;
        options.kind.kind = SIEVE_KIND_RANGES;
        change(options);
        expect_error(build_set(std::move(keys), options, {}), ErrorKind::invalid_request);
    };
    KeySet one(SIEVE_FIELD_SRC);
    one.add(key_of(v4(1)));
    KeySet flows(SIEVE_FIELD_ALL);
    flows.add(key_of(v4(1)));
    refused([](BuildOptions& o) { o.bits_per_key = 16; }, one);
    refused([](BuildOptions& o) { o.memory = 64; }, one);
    refused([](BuildOptions& o) { o.kind.choices = 2; }, one);
    refused([](BuildOptions& o) { o.kind.hashes = 2; }, one);
    refused([](BuildOptions&) {}, flows);
}

/// Each field of the geometry against the others.
TEST(Ranges, HeadersWithAFaultAreRefused) {
    const Image image =
        image_of({prefix(v4(0x0a000000), 104), prefix(address_number(0x20010db800000000, 0), 32),
                  prefix(address_number(0x20010db900000000, 5), 128)});
    ASSERT_EQ(geometry_fault(image.lookup()), "");
    const auto wrong = [&](const char* what, const std::function<void(sieve_lookup&)>& change) {
        sieve_lookup lookup = image.lookup();
        change(lookup);
        EXPECT_NE(geometry_fault(lookup), "") << what;
    };
    for (int part = 0; part < SIEVE_RANGES_PARTS; part++) {
        wrong("more cells than lines", [&](sieve_lookup& l) { l.hash_key[2 * part + 1] |= 0xffffff00; });
        wrong("another place", [&](sieve_lookup& l) { l.hash_key[2 * part + 1] += 1ULL << 32; });
        wrong("no cells",
              [&](sieve_lookup& l) { l.hash_key[2 * part + 1] = l.hash_key[2 * part + 1] >> 32 << 32; });
        wrong("tiny cells",
              [&](sieve_lookup& l) { l.hash_key[2 * part] = (l.hash_key[2 * part] & ~63ULL) | 7; });
        wrong("huge cells", [&](sieve_lookup& l) { l.hash_key[2 * part] |= 63; });
        if (sieve_ranges_shift(&image.lookup(), part) > SIEVE_RANGES_LEAST_SHIFT)
            wrong("within a cell", [&](sieve_lookup& l) { l.hash_key[2 * part] += 256; });
    }
    wrong("lines", [](sieve_lookup& l) { l.buckets = 1; });
    wrong("too many lines", [](sieve_lookup& l) { l.buckets = SIEVE_RANGES_MOST_LINES; });
    wrong("probes", [](sieve_lookup& l) { l.probes = 0; });
    wrong("hashes", [](sieve_lookup& l) { l.hashes = 1; });
    wrong("alpha", [](sieve_lookup& l) { l.alpha = 1; });
    wrong("choices", [](sieve_lookup& l) { l.choices = 2; });
    for (const std::uint32_t fields :
         {std::uint32_t{SIEVE_FIELD_SRC | SIEVE_FIELD_DST},
          std::uint32_t{SIEVE_FIELD_SRC | SIEVE_FIELD_PROTO}, std::uint32_t{SIEVE_FIELD_DPORT}})
        wrong("fields", [&](sieve_lookup& l) { l.fields = static_cast<__u8>(fields); });
}

/// Whatever the lines hold, lookups end. Run this under AddressSanitizer, too.
TEST(Ranges, SurviveAnyContent) {
    std::mt19937_64 random(4);
    const Image image =
        image_of({prefix(v4(0x0a000000), 104), prefix(address_number(0x20010db800000000, 0), 32),
                  prefix(address_number(0x20010db900000000, 5), 128)});
    std::vector<sieve_line> lines(image.filter().begin(), image.filter().end());
    for (int round = 0; round < 3000; round++) {
        for (sieve_line& line : lines)
            for (auto& word : line.word) word = random() & random();
        // Entries and children that stay within the filter, so that paths get long.
        for (sieve_line& line : lines)
            for (auto& word : line.word)
                if (random() % 2 == 0)
                    word = (random() % lines.size()) << 5 | (random() % 32) | (random() % lines.size()) << 37;
        for (const uint128 address : {v4(0x0a000000), address_number(0x20010db800000001, random()),
                                      address_number(0x20010db900000000, random())})
            (void)ranges_kind.holds_key(image.lookup(), key_of(address), lines);
    }
}

} // namespace
} // namespace sieve
