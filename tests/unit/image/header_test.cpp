// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Images that are wrong on purpose. Only their checksum is right.
#include "libsieve/image/header.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <fmt/chrono.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "libsieve/build/measure.hpp"
#include <sieve/exact_table.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kind_builder.hpp"
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_filter.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

constexpr std::size_t file_at = SIEVE_FILE_LINE * SIEVE_LINE_BYTES;
constexpr std::size_t checksum_at = file_at + offsetof(sieve_file, checksum);

void reseal(std::vector<char>& bytes) {
    const std::size_t after = checksum_at + sizeof(std::uint64_t);
    const std::uint64_t sum = XXH3_64bits_withSeed(bytes.data() + after, bytes.size() - after,
                                                   XXH3_64bits(bytes.data(), checksum_at));
    std::memcpy(bytes.data() + checksum_at, &sum, sizeof(sum));
}

Result<Image> load(const std::vector<char>& bytes, std::size_t hole = 0) {
    const UniqueFd file(::memfd_create("image", MFD_CLOEXEC));
    EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    if (hole > 0) {
        EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes.size() + hole)), 0);
    }
    return Image::load("/proc/self/fd/" + std::to_string(file.get()));
}

struct Made {
    const char* name;
    std::vector<char> bytes;
};

// One of each kind, and a prefix set.
const std::vector<Made>& images() {
    static const std::vector<Made> made = [] {
        std::vector<Made> all;
        const auto add = [&](const char* name, sieve_kind kind, std::vector<AddressRange> ranges) {
            KeySet keys(SIEVE_FIELD_SRC);
            for (std::uint32_t i = 0; i < 300; i++) {
                sieve_key key{};
                key.word[1] = sieve_v4_mapped(i * 2654435761U);
                keys.add(key);
            }
            BuildOptions options;
            options.kind.kind = kind;
            if (kind_of(kind).exact() == nullptr) options.bits_per_key = 24;
            options.seed = 5;
            options.label = "a test";
            options.trials = 10'000;
            const auto built = build_set(std::move(keys), std::move(ranges), options, {});
            if (!built) {
                ADD_FAILURE() << name << ": " << built.error().message;
                return;
            }
            const auto* bytes = reinterpret_cast<const char*>(built->image.lines().data());
            all.push_back({name, {bytes, bytes + built->image.bytes()}});
        };
        for (const FilterKind* kind : hashing_kinds()) add(kind->facts().name, kind->facts().number, {});
        const uint128 one6 = (static_cast<uint128>(0x20010db8) << 96) + 7;
        add("exact", SIEVE_KIND_EXACT, {{one6, one6}});
        const uint128 net = address_number(0, sieve_v4_mapped(0x0a000000));
        const uint128 net6 = static_cast<uint128>(0x20010db8) << 96;
        add("prefixes", SIEVE_KIND_BLOCKED,
            {{net, net + 0xffff}, {net6, net6 + (static_cast<uint128>(1) << 80) - 1}});
        add("ranges", SIEVE_KIND_RANGES,
            {{net, net + 0xffff},
             {net6, net6 + (static_cast<uint128>(1) << 80) - 1},
             {net6 << 1, (net6 << 1) + 5}});
        return all;
    }();
    return made;
}

// Everything that programs do with a loaded image. Run this under AddressSanitizer and UBSan, too.
void use(const Image& image, std::mt19937_64& random) {
    const sieve_lookup& lookup = image.lookup();
    const sieve_file& file = image.file();
    for (const sieve_witness& witness : image.witnesses()) ASSERT_TRUE(image.contains(witness.key));
    for (int i = 0; i < 20; i++) {
        sieve_key key{};
        for (auto& word : key.word) word = random();
        if (i % 2 == 0) key.word[0] = 0, key.word[1] = sieve_v4_mapped(static_cast<std::uint32_t>(random()));
        (void)image.contains(key);
    }
    const double expected = expected_fpr(image);
    ASSERT_TRUE(expected >= 0 && expected <= 1) << expected;
    const double of_witnesses = expected_fpr_of_witnesses(image, rate_from_bits(file.expected_fpr));
    ASSERT_TRUE(of_witnesses >= 0 && of_witnesses <= 1) << of_witnesses;
    const Measurement measured = measure_fpr(image, 64, 1, [](const sieve_key&) { return false; });
    ASSERT_LE(measured.trials, 64U);
    ASSERT_FALSE(kind_of(lookup).geometry(lookup).empty());
    ASSERT_LT(label_text(file).size(), 300U);
    ASSERT_FALSE(fmt::format("{:%Y}", fmt::gmtime(static_cast<std::time_t>(file.built_at))).empty());
    ASSERT_LE(image.probes().count[0], SIEVE_MAX_PROBES);
    ASSERT_LE(image.probes().count[1], SIEVE_MAX_PROBES);
    if (lookup.kind != SIEVE_KIND_DDLCBF) return;
    std::vector<sieve_line> copy(image.filter().begin(), image.filter().end());
    auto filter = DdlcbfFilter::open(lookup, copy);
    if (!filter) return;
    for (int i = 0; i < 8; i++) {
        const sieve_hash hash{random(), random()};
        if (filter->insert(hash) && i % 2 == 0) (void)filter->erase(hash);
    }
}

// Every byte of the header, with every bit flipped, and with the extreme values.
TEST(ImageHeaderTest, EveryByteIsRefusedOrHarmless) {
    std::mt19937_64 random(1);
    for (const auto& [name, bytes] : images()) {
        std::size_t refused = 0;
        std::size_t tried = 0;
        for (std::size_t at = 0; at < sizeof(ImageHeader); at++) {
            if (at >= checksum_at && at < checksum_at + sizeof(std::uint64_t)) continue;
            const auto old = static_cast<unsigned char>(bytes[at]);
            for (const int value : {old ^ 1, old ^ 2, old ^ 4, old ^ 8, old ^ 16, old ^ 32, old ^ 64,
                                    old ^ 128, 0, 0xff, old + 1, old - 1}) {
                std::vector<char> changed = bytes;
                changed[at] = static_cast<char>(value);
                reseal(changed);
                const auto image = load(changed);
                tried++;
                refused += image ? 0 : 1;
                if (image) {
                    ASSERT_NO_FATAL_FAILURE(use(*image, random)) << name << ", byte " << at;
                }
            }
        }
        // Identity, seconds, rounds, and some counts and rates may have any value. All other fields are
        // checked.
        EXPECT_GT(refused, tried / 2) << name;
    }
}

TEST(ImageHeaderTest, EveryWordIsRefusedOrHarmless) {
    std::mt19937_64 random(2);
    const std::uint64_t values[] = {0,
                                    1,
                                    0xffffffff,
                                    0x80000000,
                                    ~std::uint64_t{0},
                                    std::uint64_t{1} << 63,
                                    rate_to_bits(1),
                                    rate_to_bits(1e-300),
                                    rate_to_bits(-0.0),
                                    rate_to_bits(std::nan("")),
                                    rate_to_bits(std::numeric_limits<double>::infinity())};
    for (const auto& [name, bytes] : images())
        for (std::size_t at = 0; at < sizeof(ImageHeader); at += 4)
            for (const std::uint64_t value : values)
                for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
                    if (at + width > sizeof(ImageHeader)) continue;
                    std::vector<char> changed = bytes;
                    std::memcpy(changed.data() + at, &value, width);
                    reseal(changed);
                    const auto image = load(changed);
                    if (image) {
                        ASSERT_NO_FATAL_FAILURE(use(*image, random)) << name << ", word at " << at;
                    }
                }
}

// The filter's lines and the witnesses: no content leads to an access out of bounds.
TEST(ImageHeaderTest, AnyContentIsRefusedOrHarmless) {
    std::mt19937_64 random(3);
    for (const auto& [name, bytes] : images()) {
        const std::size_t body = bytes.size() - sizeof(ImageHeader);
        for (int round = 0; round < 300; round++) {
            std::vector<char> changed = bytes;
            const std::uint64_t changes = std::uint64_t{1} << random() % 9;
            for (std::uint64_t i = 0; i < changes; i++)
                changed[sizeof(ImageHeader) + random() % body] = static_cast<char>(random());
            reseal(changed);
            const auto image = load(changed);
            if (image) {
                ASSERT_NO_FATAL_FAILURE(use(*image, random)) << name << ", round " << round;
            }
        }
    }
}

// Impossible statements of a header with a right checksum, and what they once led to.
TEST(ImageHeaderTest, SaysWhatCannotBe) {
    const std::vector<char>& plain = images().front().bytes;
    const std::vector<char>& prefixes = images().back().bytes;
    const auto refusal = [](std::vector<char> bytes, std::size_t at, auto value) {
        std::memcpy(bytes.data() + at, &value, sizeof(value));
        reseal(bytes);
        const auto image = load(bytes);
        return image ? std::string("it was loaded") : image.error().message;
    };
    const auto says = [](const std::string& message, const char* text) {
        return message.find(text) != std::string::npos ? testing::AssertionSuccess()
                                                       : testing::AssertionFailure() << message;
    };
    constexpr std::size_t probes_at = SIEVE_PROBES_LINE * SIEVE_LINE_BYTES;
    EXPECT_TRUE(says(refusal(plain, probes_at, std::uint8_t{200}), "prefix lengths"));
    EXPECT_TRUE(says(refusal(plain, probes_at + 63, std::uint8_t{1}), "reserved"));
    for (const double covered : {7.0, -1.0, std::nan("")})
        EXPECT_TRUE(says(refusal(prefixes, file_at + offsetof(sieve_file, covered), rate_to_bits(covered)),
                         "not a share"));
    EXPECT_TRUE(says(refusal(plain, file_at + offsetof(sieve_file, covered), rate_to_bits(0.5)),
                     "no packet is asked for"));
    EXPECT_TRUE(says(refusal(plain, file_at + offsetof(sieve_file, keys), ~std::uint64_t{0}), "cannot hold"));
    EXPECT_TRUE(says(refusal(plain, file_at + offsetof(sieve_file, entries), std::uint64_t{1}), "entries"));
    EXPECT_TRUE(says(refusal(plain, file_at + offsetof(sieve_file, built_at), ~std::uint64_t{0}), "date"));
    EXPECT_TRUE(says(refusal(plain, file_at + offsetof(sieve_file, changes), std::uint64_t{1}), "changed"));
    EXPECT_TRUE(says(refusal(plain, file_at + offsetof(sieve_file, reserved), std::uint64_t{1}), "reserved"));
    EXPECT_TRUE(says(refusal(plain, file_at + offsetof(sieve_file, label), '\x1b'), "not text"));
    EXPECT_TRUE(says(refusal(plain, file_at + offsetof(sieve_file, label) + 20, 'x'), "behind the end"));
    EXPECT_TRUE(says(refusal(plain, plain.size() - SIEVE_LINE_BYTES, std::uint64_t{1}), "own witnesses"));
    EXPECT_TRUE(says(refusal(plain, plain.size() - 1, std::uint8_t{1}), "witness that is no key"));
    EXPECT_TRUE(says(refusal(plain, plain.size() - 48, std::uint64_t{1}), "witness that is no key"));
}

// The header is judged before the rest is read and before memory is allocated.
TEST(ImageHeaderTest, IsJudgedFirst) {
    expect_error(load(images().front().bytes, std::size_t{6} << 30), ErrorKind::bad_input);
    // An endless pipe.
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd from(ends[0]);
    const UniqueFd to(ends[1]);
    const std::vector<char> zeros(sizeof(ImageHeader));
    ASSERT_EQ(::write(to.get(), zeros.data(), zeros.size()), static_cast<ssize_t>(zeros.size()));
    expect_error(Image::load("/proc/self/fd/" + std::to_string(from.get())), ErrorKind::bad_input);
}

} // namespace
} // namespace sieve
