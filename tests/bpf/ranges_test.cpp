// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `ranges` in the kernel, against the kernel's own set of prefixes: the LPM trie.
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>

#include "bpf/bounded.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/preflight.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {
namespace {

// The address's bytes in network order behind a length, as the kernel's trie takes it.
struct TrieKey {
    std::uint32_t length;
    std::array<std::uint8_t, 16> address;
};

TrieKey trie_key(uint128 address, std::uint32_t length) {
    TrieKey key{.length = length, .address = {}};
    for (std::size_t i = 0; i < 16; i++) key.address[i] = static_cast<std::uint8_t>(address >> (120 - 8 * i));
    return key;
}

// One trie for both families: IPv4 in v4-mapped form.
class Trie {
  public:
    explicit Trie(std::uint32_t most) {
        bpf_map_create_opts options{};
        options.sz = sizeof(options);
        options.map_flags = BPF_F_NO_PREALLOC;
        fd_ = UniqueFd(
            bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "ranges_oracle", sizeof(TrieKey), 1, most, &options));
        EXPECT_GE(fd_.get(), 0);
    }
    void add(uint128 address, std::uint32_t length) {
        const TrieKey key = trie_key(address, length);
        const std::uint8_t value = 1;
        ASSERT_EQ(bpf_map_update_elem(fd_.get(), &key, &value, BPF_ANY), 0);
    }
    [[nodiscard]] bool holds(uint128 address) const {
        const TrieKey key = trie_key(address, 128);
        std::uint8_t value = 0;
        return bpf_map_lookup_elem(fd_.get(), &key, &value) == 0;
    }

  private:
    UniqueFd fd_;
};

sieve_key key_of(uint128 address, std::uint32_t field) {
    sieve_key key{};
    key.word[field == SIEVE_FIELD_SRC ? 0 : 2] = static_cast<std::uint64_t>(address >> 64);
    key.word[field == SIEVE_FIELD_SRC ? 1 : 3] = static_cast<std::uint64_t>(address);
    return key;
}

struct Prefix {
    uint128 address;
    std::uint32_t length; // of 128
};

uint128 last_of(const Prefix& prefix) {
    return prefix.address | (prefix.length == 0 ? ~uint128{0} : (uint128{1} << (128 - prefix.length)) - 1);
}

// Prefixes of all lengths from the shortest on, of both families. Some of them crowd.
std::vector<Prefix> random_prefixes(std::size_t count, std::uint32_t shortest4, std::uint32_t shortest6,
                                    std::mt19937_64& random) {
    std::vector<Prefix> prefixes;
    for (std::size_t i = 0; i < count; i++) {
        const bool v4 = random() % 2 == 0;
        const std::uint32_t length =
            v4 ? 96 + shortest4 + static_cast<std::uint32_t>(random() % (33 - shortest4))
               : shortest6 + static_cast<std::uint32_t>(random() % (129 - shortest6));
        const bool crowded = random() % 2 == 0;
        const std::uint32_t low = static_cast<std::uint32_t>(random());
        const uint128 address = v4 ? uint128{sieve_v4_mapped(crowded ? 0x0a0a0000 | (low & 0xffff) : low)}
                                   : address_number(0x2001000000000000 | (random() >> (crowded ? 44 : 16)),
                                                    random() >> (crowded ? 40 : 0));
        const uint128 host = length == 128 ? 0 : ~uint128{0} >> length;
        prefixes.push_back({address & ~host, length});
    }
    return prefixes;
}

struct Case {
    const char* name;
    std::uint32_t field;
    HookPoint point;
    std::size_t count;
    std::uint32_t shortest4, shortest6;
};

class RangesInTheKernel : public testing::TestWithParam<Case> {};

// Real packets through the real program. Every answer is that of the trie: no member is missed, nothing else
// matches.
TEST_P(RangesInTheKernel, AnswerLikeTheLpmTrie) {
    const Case& c = GetParam();
    std::mt19937_64 random(c.count);
    const std::vector<Prefix> prefixes = random_prefixes(c.count, c.shortest4, c.shortest6, random);
    Trie trie(static_cast<std::uint32_t>(prefixes.size()));
    std::vector<AddressRange> ranges;
    for (const Prefix& prefix : prefixes) {
        trie.add(prefix.address, prefix.length);
        ranges.push_back({prefix.address, last_of(prefix)});
    }
    BuildOptions options;
    options.seed = 1;
    options.kind.kind = SIEVE_KIND_RANGES;
    const auto built = build_set(KeySet(c.field), ranges, options, {});
    ASSERT_TRUE(built) << built.error().message;
    const Image& image = built->image;

    const auto map = FilterMap::create(image, "ranges");
    ASSERT_TRUE(map) << map.error().message;
    auto preflight = Preflight::start(c.point);
    ASSERT_TRUE(preflight) << preflight.error().message;
    const auto passed = preflight->check(image, *map, "ranges");
    ASSERT_TRUE(passed) << passed.error().message;
    EXPECT_EQ(passed->members, image.file().witnesses);
    const Scratch& scratch = test::shared_program(c.point);
    ASSERT_TRUE(scratch.table().replace({.sets = {{.name = "ranges", .map_fd = map->fd()}}}));

    packets::Carrier carrier;
    std::size_t members = 0;
    std::size_t strangers = 0;
    const auto ask = [&](uint128 address) {
        const sieve_key key = key_of(address, c.field);
        const bool expected = trie.holds(address);
        ASSERT_EQ(image.contains(key), expected) << format_key(key, c.field);
        const auto verdict = scratch.run(carrier.carry(key, c.field));
        ASSERT_TRUE(verdict) << verdict.error().message;
        ASSERT_EQ(*verdict == SIEVE_VERDICT_DROP, expected) << format_key(key, c.field);
        (expected ? members : strangers)++;
    };
    const std::size_t asked = std::min<std::size_t>(prefixes.size(), test::bounded(4'000));
    for (std::size_t i = 0; i < asked; i++) {
        const Prefix& prefix = prefixes[random() % prefixes.size()];
        const uint128 last = last_of(prefix);
        const bool v4 = is_ipv4(prefix.address);
        ask(prefix.address);
        ask(last);
        if (!v4 || prefix.address != all_ipv4.first) ask(prefix.address - 1);
        if (!v4 || last != all_ipv4.last) ask(last + 1);
        ask(v4 ? all_ipv4.first + static_cast<std::uint32_t>(random())
               : address_number(0x2001000000000000 | (random() >> 16), random()));
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(members, asked);
    EXPECT_GT(strangers, asked / 4);
}

INSTANTIATE_TEST_SUITE_P(Lists, RangesInTheKernel,
                         testing::Values(Case{"Few", SIEVE_FIELD_SRC, HookPoint::xdp, 20, 8, 16},
                                         Case{"AnyLengths", SIEVE_FIELD_SRC, HookPoint::xdp, 3'000, 9, 20},
                                         Case{"Hosts", SIEVE_FIELD_DST, HookPoint::egress, 60'000, 20, 60}),
                         [](const auto& info) { return info.param.name; });

} // namespace
} // namespace sieve::kernel
