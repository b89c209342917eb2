// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The d-left filters in every form that an image can have, grouped and overfull buckets included. No build
// chooses most of these forms by itself. The kernel must answer as user space does, and miss no member.
#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/filters/kinds/dleft/dleft_builder.hpp"
#include "libsieve/filters/placement/distinct_hashes.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

struct Form {
    const char* name;
    DleftShape shape;
    double keys_a_bucket;
    std::uint32_t shard_bits = 0;
};

constexpr std::uint32_t lines_a_shard = 300;
constexpr std::uint32_t least_lines_a_shard = 512; // of a subtable, if there are several shards

sieve_key random_source(std::mt19937_64& random) {
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(static_cast<std::uint32_t>(random()));
    return key;
}

class DleftForms : public testing::TestWithParam<Form> {};

TEST_P(DleftForms, KernelAnswersAsUserSpace) {
    const Form& form = GetParam();
    std::mt19937_64 random(7);
    const std::uint32_t lines_a_subtable =
        form.shard_bits == 0 ? lines_a_shard : least_lines_a_shard << form.shard_bits;
    Image image = value_or_fail(Image::create(std::uint64_t{lines_a_subtable} * form.shape.subtables, 1));
    sieve_lookup& lookup = image.lookup();
    store_shape(form.shape, lookup);
    lookup.buckets = lines_a_subtable;
    lookup.shard_bits = static_cast<__u8>(form.shard_bits);
    lookup.fields = SIEVE_FIELD_SRC;
    for (auto& word : lookup.hash_key) word = random();

    std::vector<sieve_key> members(static_cast<std::size_t>(
        form.keys_a_bucket * lines_a_subtable * form.shape.subtables * form.shape.buckets_per_line()));
    std::vector<sieve_hash> hashes;
    for (sieve_key& key : members) {
        key = random_source(random);
        hashes.push_back(sieve_hash_key(&key, lookup.hash_key, lookup.fields));
    }
    std::ranges::sort(hashes, hash_order);
    const auto placed = place_dleft(hashes, lookup, image.filter(), {.rounds = 0}, {});
    ASSERT_TRUE(placed) << placed.error().message;

    const FilterMap map = map_of(image, "forms");
    const Scratch& scratch = shared_program();
    ASSERT_TRUE(scratch.ask_only(map.fd()));
    packets::Carrier carrier;
    const auto dropped = [&](const sieve_key& key) {
        return value_or_fail(scratch.run(carrier.carry(key, lookup.fields))) == XDP_DROP;
    };
    std::size_t matched = 0;
    for (const sieve_key& key : members) ASSERT_TRUE(image.contains(key)) << "a member was missed";
    for (const sieve_key& key : std::span(members).first(bounded(members.size())))
        ASSERT_TRUE(dropped(key)) << "a member was missed";
    const std::size_t non_members = bounded(50'000);
    for (std::size_t i = 0; i < non_members; i++) {
        const sieve_key key = random_source(random);
        const bool kernel_says = dropped(key);
        ASSERT_EQ(kernel_says, image.contains(key)) << std::hex << key.word[1];
        matched += kernel_says ? 1 : 0;
    }
    EXPECT_LT(matched, non_members) << "a filter that matches everything proves nothing";
}

INSTANTIATE_TEST_SUITE_P(Shapes, DleftForms,
                         testing::Values(Form{"Narrow", {SIEVE_KIND_DLEFT64, 2, 0, false}, 3.5},
                                         Form{"NarrowSorted", {SIEVE_KIND_DLEFT64, 3, 1, false}, 4},
                                         Form{"NarrowUsualInShards", {SIEVE_KIND_DLEFT64, 2, 1, false}, 4, 2},
                                         Form{"NarrowInShards", {SIEVE_KIND_DLEFT64, 4, 1, false}, 3, 1},
                                         Form{"NarrowOverfull", {SIEVE_KIND_DLEFT64, 4, 1, false}, 7},
                                         Form{"NarrowGrouped", {SIEVE_KIND_DLEFT64, 3, 0, true}, 3},
                                         Form{"NarrowGroupedSorted", {SIEVE_KIND_DLEFT64, 4, 1, true}, 3.5},
                                         Form{"Wide", {SIEVE_KIND_DLEFT128, 2, 0, false}, 6},
                                         Form{"WideSorted", {SIEVE_KIND_DLEFT128, 4, 1, false}, 7},
                                         Form{"WideUsualInShards", {SIEVE_KIND_DLEFT128, 2, 2, false}, 6, 1},
                                         Form{"WideInShards", {SIEVE_KIND_DLEFT128, 3, 1, false}, 6, 1},
                                         Form{"WideSortedTwo", {SIEVE_KIND_DLEFT128, 3, 2, false}, 6.5},
                                         Form{"WideOverfull", {SIEVE_KIND_DLEFT128, 2, 2, false}, 12},
                                         Form{"WideGrouped", {SIEVE_KIND_DLEFT128, 3, 0, true}, 6},
                                         Form{"WideGroupedSorted", {SIEVE_KIND_DLEFT128, 2, 1, true}, 6},
                                         Form{"WideGroupedSortedTwo", {SIEVE_KIND_DLEFT128, 4, 2, true}, 7}),
                         [](const auto& info) { return info.param.name; });

} // namespace
} // namespace sieve::kernel
