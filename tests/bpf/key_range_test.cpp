// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Sets of several fields whose addresses are prefixes: a list of ten thousand entries as text, against an
// index of the entries that the test keeps itself.
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <fmt/core.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "libsieve/analysis/binomial.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/measure.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/programs/preflight.hpp"
#include "libsieve/packets/carrier.hpp"
#include "model/image_model.hpp"

namespace sieve::kernel {
namespace {

using test::bounded;
using test::map_of;
using test::value_or_fail;

constexpr std::uint32_t fields = SIEVE_FIELD_DST | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;
constexpr int any = -1;

struct Entry {
    std::uint32_t address; // the network
    int length;
    int port; // or any
    int proto;
};

std::string text_of(const Entry& entry) {
    const std::uint32_t a = entry.address;
    return fmt::format("{}.{}.{}.{}{} {} {}\n", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255,
                       entry.length == 32 ? "" : fmt::format("/{}", entry.length),
                       entry.port == any ? "*" : std::to_string(entry.port), entry.proto);
}

std::uint32_t network(std::uint32_t address, int length) {
    return length == 0 ? 0 : address & (~std::uint32_t{0} << (32 - length));
}

std::vector<Entry> random_entries(std::size_t count, std::mt19937_64& random) {
    const int lengths[] = {32, 32, 32, 32, 32, 32, 24, 24, 24, 28, 20, 16};
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < count; i++) {
        const int length = lengths[random() % std::size(lengths)];
        const auto address = static_cast<std::uint32_t>(random() % (std::uint64_t{224} << 24));
        const bool open = random() % 20 == 0;
        entries.push_back({network(address, length), length,
                           open ? any : static_cast<int>(random() % 8 == 0 ? random() % 65536 : 443),
                           random() % 3 == 0 ? 17 : 6});
    }
    return entries;
}

// The entries by their networks: whether one of them holds a packet's key.
class Index {
  public:
    explicit Index(const std::vector<Entry>& entries) {
        for (const Entry& e : entries) known_.insert({e.length, e.address, e.port, e.proto});
    }
    [[nodiscard]] bool holds(std::uint32_t address, int port, int proto) const {
        for (int length = 0; length <= 32; length++)
            for (const int p : {port, any})
                if (known_.contains({length, network(address, length), p, proto})) return true;
        return false;
    }

  private:
    std::set<std::tuple<int, std::uint32_t, int, int>> known_;
};

sieve_key key_of(std::uint32_t address, int port, int proto) {
    sieve_key key{};
    key.word[3] = sieve_v4_mapped(address);
    key.word[4] = sieve_transport_word(0, static_cast<std::uint16_t>(port), static_cast<std::uint8_t>(proto));
    return key;
}

struct Set {
    std::vector<Entry> entries;
    Members list{fields};
    std::optional<BuiltSet> built{};
};

Set build_list(std::uint32_t max_probes) {
    std::mt19937_64 random(1);
    Set set{random_entries(10'000, random)};
    const std::string path = fmt::format("/tmp/sieve-key-ranges-{}", ::getpid());
    std::ofstream file(path);
    for (const Entry& entry : set.entries) file << text_of(entry);
    file.close();
    Feed feed = value_or_fail(read_feed({path}, fields, {.key_ranges = true}));
    ::unlink(path.c_str());
    EXPECT_EQ(feed.keys.size() + feed.key_ranges.size(), set.entries.size());
    set.list = Members(std::move(feed.keys), {}, std::move(feed.key_ranges));
    BuildOptions options;
    options.seed = 3;
    options.bits_per_key = 12;
    options.kind.rounds = 2;
    options.prefixes.max_probes = max_probes;
    set.built = value_or_fail(build_set(set.list, options, {}));
    return set;
}

class KeyRanges : public testing::TestWithParam<std::uint32_t> {};

TEST_P(KeyRanges, OfTenThousandEntriesMissNoMember) {
    const Set set = build_list(GetParam());
    const Image& image = set.built->image;
    EXPECT_LE(image.probes().count[SIEVE_FAMILY_V4], GetParam());
    const Index index(set.entries);
    const model::FilterImage model(
        {reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()});
    const FilterMap map = map_of(image);
    auto preflight = value_or_fail(Preflight::start());
    value_or_fail(preflight.check(image, map, "ranges"));
    const auto scratch = value_or_fail(Scratch::load(false));
    ASSERT_TRUE(scratch.ask_only(map.fd()));
    packets::Carrier carrier;
    std::mt19937_64 random(2);
    const auto dropped = [&](const sieve_key& key) {
        const auto verdict = scratch.run(carrier.carry(key, fields));
        EXPECT_TRUE(verdict);
        return *verdict == XDP_DROP;
    };

    std::size_t missed = 0;
    std::size_t missed_in_kernel = 0;
    for (std::size_t i = 0; i < bounded(GetParam() == 4 ? 1'000'000 : 50'000); i++) {
        const Entry& entry = set.entries[random() % set.entries.size()];
        const std::uint32_t host = entry.length == 32 ? 0 : ~std::uint32_t{0} >> entry.length;
        const sieve_key key =
            key_of(entry.address | (static_cast<std::uint32_t>(random()) & host),
                   entry.port == any ? static_cast<int>(random() % 65536) : entry.port, entry.proto);
        missed += image.contains(key) ? 0 : 1;
        if (i % 4 == 0) missed_in_kernel += dropped(key) ? 0 : 1;
        if (i % 512 == 0) {
            ASSERT_TRUE(model.contains({0, 0, key.word[2], key.word[3], key.word[4]}));
        }
    }
    EXPECT_EQ(missed, 0U);
    EXPECT_EQ(missed_in_kernel, 0U);

    std::uint64_t non_members = 0;
    std::uint64_t matched = 0;
    for (std::size_t i = 0; i < bounded(100'000); i++) {
        const auto address = static_cast<std::uint32_t>(random());
        const int port = random() % 2 == 0 ? 443 : static_cast<int>(random() % 65536);
        const int proto = random() % 2 == 0 ? 6 : 17;
        const sieve_key key = key_of(address, port, proto);
        const bool holds = image.contains(key);
        ASSERT_EQ(dropped(key), holds) << format_key(key, fields);
        if (i % 16 == 0) {
            ASSERT_EQ(model.contains({0, 0, key.word[2], key.word[3], key.word[4]}), holds);
        }
        if (index.holds(address, port, proto)) {
            ASSERT_TRUE(holds) << format_key(key, fields);
            continue;
        }
        non_members++;
        matched += holds ? 1 : 0;
    }
    const double expected = expected_fpr_of(image, set.built->report.expected_fpr, key_of(0, 0, 6));
    EXPECT_TRUE(analysis::fits_rate(matched, non_members, expected))
        << matched << " of " << non_members << ", expected " << expected;
    std::printf("%u probes, %lu stored keys: 0 missed, %lu of %lu strangers matched, rate %.3g printed\n",
                static_cast<unsigned>(image.probes().count[0]), static_cast<unsigned long>(image.file().keys),
                static_cast<unsigned long>(matched), static_cast<unsigned long>(non_members),
                set.built->report.expected_fpr);
}

INSTANTIATE_TEST_SUITE_P(Probes, KeyRanges, testing::Values(4U, 8U));

// Verified, no non-member matches and no member is missed.
TEST(KeyRangeSets, AreVerified) {
    const Set set = build_list(8);
    const Image& image = set.built->image;
    const auto exact = value_or_fail(exact_keys(set.list, image, "list"));
    EXPECT_EQ(exact.size(), image.file().keys);
    const FilterMap map = map_of(image);
    const ExactSet keys = value_or_fail(ExactSet::create(image, exact, "exact"));
    auto preflight = value_or_fail(Preflight::start());
    EXPECT_GT(value_or_fail(preflight.check(image, map, "ranges", &keys)).avoided, 0U);
    const auto scratch = value_or_fail(Scratch::load(false));
    ASSERT_TRUE(scratch.ask_only(map.fd(), keys.fd()));
    const Index index(set.entries);
    packets::Carrier carrier;
    std::mt19937_64 random(4);
    for (std::size_t i = 0; i < bounded(50'000); i++) {
        const Entry& near = set.entries[random() % set.entries.size()];
        const std::uint32_t address =
            near.address ^ static_cast<std::uint32_t>(random() % 3 * (random() % 4096));
        const int port = random() % 2 == 0 ? near.port & 0xffff : static_cast<int>(random() % 65536);
        const sieve_key key = key_of(address, port, near.proto);
        ASSERT_EQ(value_or_fail(scratch.run(carrier.carry(key, fields))) == XDP_DROP,
                  index.holds(address, port, near.proto))
            << format_key(key, fields);
    }
}

// Both addresses as prefixes, and IPv6, in the kernel, in every form of every kind that stores hashes: it
// answers as the image does, for each key near an entry.
TEST(KeyRangeSets, OfBothAddressesAndFamiliesInEveryKind) {
    const std::uint32_t both = SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;
    const std::string path = fmt::format("/tmp/sieve-key-ranges-{}", ::getpid());
    std::ofstream(path) << "10.0.0.0/8 192.0.2.0/24 443\n"
                           "172.16.0.0/12 192.0.2.1 *\n"
                           "2001:db8::/32 2001:db8:1::/48 443\n"
                           "2001:db8:7::/64 * 53\n"
                           "* 198.51.100.0-198.51.100.63 53\n";
    Feed feed = value_or_fail(read_feed({path}, both, {.key_ranges = true}));
    ::unlink(path.c_str());
    const Members list(std::move(feed.keys), {}, std::move(feed.key_ranges));
    auto preflight = value_or_fail(Preflight::start());
    const auto scratch = value_or_fail(Scratch::load(false));
    packets::Carrier carrier;
    const auto try_out = [&](const KindOptions& kind) {
        BuildOptions options;
        options.seed = 1;
        options.bits_per_key = 40;
        options.kind = kind;
        const Image image = value_or_fail(build_set(list, options, {})).image;
        const FilterMap map = map_of(image);
        value_or_fail(preflight.check(image, map, "both"));
        ASSERT_TRUE(scratch.ask_only(map.fd()));
        const auto dropped = [&](const std::string& text) {
            const sieve_key key = value_or_fail(parse_key(text, both));
            const bool kernel = value_or_fail(scratch.run(carrier.carry(key, both))) == XDP_DROP;
            EXPECT_EQ(kernel, image.contains(key)) << text;
            return kernel;
        };
        for (const char* text :
             {"10.255.0.1 192.0.2.77 443", "172.31.255.255 192.0.2.1 9", "172.16.0.0 192.0.2.1 65535",
              "2001:db8:ffff::1 2001:db8:1:2::3 443", "2001:db8:7::9 fe80::1 53",
              "203.0.113.9 198.51.100.0 53", "203.0.113.9 198.51.100.63 53"})
            EXPECT_TRUE(dropped(text)) << text;
        for (const char* text :
             {"11.0.0.1 192.0.2.77 443", "10.0.0.1 192.0.3.77 443", "10.0.0.1 192.0.2.77 444",
              "172.32.0.0 192.0.2.1 9", "172.16.0.0 192.0.2.2 9", "2001:db9::1 2001:db8:1::1 443",
              "2001:db8::1 2001:db8:2::1 443", "2001:db8:7:1::9 fe80::1 53", "203.0.113.9 198.51.100.64 53",
              "203.0.113.9 198.51.100.0 54"})
            EXPECT_FALSE(dropped(text)) << text;
    };
    for (const FilterKind* kind : hashing_kinds())
        for (std::uint32_t choices = kind->facts().choices.least; choices <= kind->facts().choices.most;
             choices++) {
            SCOPED_TRACE(fmt::format("{}, {}", kind->facts().name, kind->count_choices(choices)));
            try_out({.kind = kind->facts().number, .choices = choices});
        }
}

} // namespace
} // namespace sieve::kernel
