// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Exceptions in the kernel: what the image promises not to match does not match there either, and preflight
// asks.
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include "bpf/images.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/programs/preflight.hpp"
#include "libsieve/packets/carrier.hpp"

namespace sieve::kernel {
namespace {

using test::map_of;
using test::value_or_fail;

sieve_key v4_key(std::uint32_t address) {
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(address);
    return key;
}

BuildOptions seeded(std::uint64_t seed) {
    BuildOptions options;
    options.seed = seed;
    options.bits_per_key = 16;
    options.kind.rounds = 1;
    options.trials = 50'000;
    return options;
}

// A real list at 16 bits a key and a thousand addresses: the kernel lets each of them pass.
TEST(Exceptions, NoneOfAThousandMatchesInTheKernel) {
    auto feed = value_or_fail(read_feed({"tests/data/ipsum.txt"}, SIEVE_FIELD_SRC, {.ranges = true}));
    Members list(std::move(feed.keys), std::move(feed.ranges));
    std::mt19937_64 random(1);
    Members out(SIEVE_FIELD_SRC);
    for (int i = 0; i < 1000; i++)
        out.keys.add(i < 20 ? list.keys.at(random() % list.keys.size())
                            : v4_key(static_cast<std::uint32_t>(random())));
    value_or_fail(subtract(list, out));
    const auto built = value_or_fail(build_set(list, seeded(2), {}, {.lines = prefixes_of(out)}));
    const FilterMap map = map_of(built.image);
    auto preflight = value_or_fail(Preflight::start());
    const PreflightReport report = value_or_fail(preflight.check(built.image, map, "ipsum"));
    EXPECT_EQ(report.exceptions, built.report.exceptions);
    const auto scratch = value_or_fail(Scratch::load(false));
    ASSERT_TRUE(scratch.ask_only(map.fd()));
    packets::Carrier carrier;
    for (std::size_t i = 0; i < out.keys.size(); i++)
        ASSERT_EQ(value_or_fail(scratch.run(carrier.carry(out.keys.at(i), SIEVE_FIELD_SRC))), XDP_PASS);
    for (std::size_t i = 0; i < list.keys.size(); i += 97)
        ASSERT_EQ(value_or_fail(scratch.run(carrier.carry(list.keys.at(i), SIEVE_FIELD_SRC))), XDP_DROP);
}

// A filter that matches an exception does not pass, even if its image was not checked.
TEST(Exceptions, PreflightRefusesAFilterThatMatchesOne) {
    Members list(SIEVE_FIELD_SRC);
    for (std::uint32_t i = 0; i < 1000; i++) list.keys.add(v4_key(0x0a000000 + i));
    Members out(SIEVE_FIELD_SRC);
    for (std::uint32_t i = 0; i < 3; i++) out.keys.add(v4_key(0xc0000200 + 2 * i));
    auto built = value_or_fail(build_set(list, seeded(1), {}, {.lines = prefixes_of(out)}));
    auto preflight = value_or_fail(Preflight::start());
    EXPECT_TRUE(preflight.check(built.image, map_of(built.image), "good"));
    for (sieve_exception& exception : built.image.exceptions())
        if (exception.key.word[1] == v4_key(0xc0000202).word[1]) exception.key = v4_key(0x0a000007);
    const auto refused = preflight.check(built.image, map_of(built.image), "bad");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("exceptions matched"), std::string::npos)
        << refused.error().message;
}

// Exceptions that were left to verification: a whole network. Verified, none of it matches; without
// verification the set is refused.
TEST(Exceptions, LeftToVerificationHoldOnlyWithIt) {
    Members list(SIEVE_FIELD_SRC);
    for (std::uint32_t i = 0; i < 5000; i++) list.keys.add(v4_key(0x0a000000 + i));
    Members out(SIEVE_FIELD_SRC);
    out.ranges.push_back({sieve_v4_mapped(0x10000000), sieve_v4_mapped(0x1fffffff)});
    BuildOptions options = seeded(1);
    options.bits_per_key = 6; // so that many of the network match the filter alone
    const auto built =
        value_or_fail(build_set(list, options, {}, {.lines = prefixes_of(out), .verified = true}));
    const auto exact = value_or_fail(exact_keys(list, built.image, "list"));
    const FilterMap map = map_of(built.image);
    const ExactSet keys = value_or_fail(ExactSet::create(built.image, exact, "exact"));
    auto preflight = value_or_fail(Preflight::start());
    const auto refused = preflight.check(built.image, map, "set");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("must be verified"), std::string::npos) << refused.error().message;
    const PreflightReport report = value_or_fail(preflight.check(built.image, map, "set", &keys));
    EXPECT_GT(report.exceptions, 4000U);
}

} // namespace
} // namespace sieve::kernel
