// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Images of kind exact that are wrong in one place, under a right checksum: refused, whatever the place is.
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <sieve/exact_table.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"
#include "libsieve/image/image.hpp"

namespace sieve {
namespace {

Image image_of(std::size_t ipv4, std::size_t ipv6) {
    std::mt19937_64 random(ipv4);
    KeySet keys(SIEVE_FIELD_SRC);
    for (std::size_t i = 0; i < ipv4; i++) keys.add_ipv4(static_cast<std::uint32_t>(random()));
    for (std::size_t i = 0; i < ipv6; i++) {
        sieve_key key{};
        key.word[0] = 0x20010db800000000;
        key.word[1] = random();
        keys.add(key);
    }
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    options.seed = 1;
    options.label = "x";
    auto built = build_set(keys, options, {});
    if (!built) {
        ADD_FAILURE() << built.error().message;
        std::abort();
    }
    return std::move(built->image);
}

const sieve_exact& geometry_of(const Image& image) {
    return *sieve_exact_of(&image.lookup());
}

/// The message of a refusal is one sentence that begins with the file.
std::string refusal_of(const Image& image, const std::string& what) {
    const Status status = image.check("x.img");
    if (status) {
        ADD_FAILURE() << what << " is accepted";
        return {};
    }
    EXPECT_EQ(status.error().kind, ErrorKind::bad_input) << what;
    EXPECT_TRUE(status.error().message.starts_with("x.img: ")) << what << ": " << status.error().message;
    return status.error().message;
}

/// A field of the header that says nothing about the set: any value, or some, may stand there.
struct Remark {
    const char* name;
    std::size_t at;
    std::size_t bytes;
};
constexpr std::size_t file_at = SIEVE_FILE_LINE * SIEVE_LINE_BYTES;
constexpr auto remarks = std::to_array<Remark>({
    {"checksum, which is put right", file_at + offsetof(sieve_file, checksum), 8},
    {"identity", file_at + offsetof(sieve_file, identity), 16},
    {"built_at", file_at + offsetof(sieve_file, built_at), 8},
    {"rounds", file_at + offsetof(sieve_file, rounds), 4},
    {"measured_trials", file_at + offsetof(sieve_file, measured_trials), 8},
    {"skipped", file_at + offsetof(sieve_file, skipped), 8},
    {"label", file_at + offsetof(sieve_file, label), 64},
});

const char* remark_at(std::size_t byte) {
    for (const Remark& remark : remarks)
        if (byte >= remark.at && byte < remark.at + remark.bytes) return remark.name;
    return nullptr;
}

/// Header, table of both families, witnesses: every bit, one after the other.
TEST(ExactImage, WithAnyBitFlippedIsRefused) {
    Image image = image_of(640, 30);
    ASSERT_TRUE(image.check("x.img"));
    ASSERT_GT(geometry_of(image).lines, sieve_exact_ipv6_line(&geometry_of(image)) + 1);
    auto* bytes = reinterpret_cast<unsigned char*>(&image.lookup());
    // A changed size must not reach beyond the image, which is a mapping of its own.
    for (std::size_t byte = 0; byte < image.bytes(); byte++) {
        if (remark_at(byte) != nullptr) continue;
        for (int bit = 0; bit < 8; bit++) {
            const unsigned char before = bytes[byte];
            bytes[byte] = static_cast<unsigned char>(before ^ 1U << bit);
            image.seal();
            refusal_of(image, fmt::format("line {}, byte {}, bit {}", byte / SIEVE_LINE_BYTES,
                                          byte % SIEVE_LINE_BYTES, bit));
            bytes[byte] = before;
            if (HasFailure()) return;
        }
    }
    image.seal();
    EXPECT_TRUE(image.check("x.img"));
}

/// Each field of line 0 replaced by numbers at which behaviour might change.
TEST(ExactImage, WithAnyFieldReplacedIsRefused) {
    struct Field {
        const char* name;
        std::size_t at;
        std::size_t bytes;
    };
    constexpr auto fields = std::to_array<Field>({
        {"magic", offsetof(sieve_exact, magic), 4},
        {"kind", offsetof(sieve_exact, kind), 1},
        {"fields", offsetof(sieve_exact, fields), 1},
        {"choices", offsetof(sieve_exact, choices), 1},
        {"width", offsetof(sieve_exact, width), 1},
        {"lines", offsetof(sieve_exact, lines), 4},
        {"value_bits", offsetof(sieve_exact, value_bits), 1},
        {"last", offsetof(sieve_exact, last), 1},
        {"probes", offsetof(sieve_exact, probes), 1},
        {"marks", offsetof(sieve_exact, marks), 1},
        {"words", offsetof(sieve_exact, words), 4},
        {"range", offsetof(sieve_exact, range), 4},
        {"add", offsetof(sieve_exact, add), 4},
        {"multiply[0]", offsetof(sieve_exact, multiply), 4},
        {"multiply[1]", offsetof(sieve_exact, multiply) + 4, 4},
        {"multiply[2]", offsetof(sieve_exact, multiply) + 8, 4},
        {"spread", offsetof(sieve_exact, spread), 4},
        {"reach", offsetof(sieve_exact, reach), 4},
        {"feet", offsetof(sieve_exact, feet), 8},
        {"second", offsetof(sieve_exact, second), 8},
    });
    std::size_t covered = 0;
    for (const Field& field : fields) {
        ASSERT_EQ(field.at, covered) << field.name;
        covered += field.bytes;
    }
    ASSERT_EQ(covered, sizeof(sieve_exact)) << "a field is missing";

    std::mt19937_64 random(2);
    for (const std::size_t ipv6 : {0, 30}) {
        Image image = image_of(3'000, ipv6);
        const sieve_lookup before = image.lookup();
        for (const Field& field : fields) {
            std::uint64_t old = 0;
            std::memcpy(&old, reinterpret_cast<const char*>(&before) + field.at, field.bytes);
            std::vector<std::uint64_t> numbers = {
                0,    1,    2,       3,       7,          8,          9,       16,
                21,   31,   32,      33,      63,         64,         127,     128,
                255,  256,  0x7fff,  0xffff,  0x7fffffff, 0x80000000, old - 8, old - 1,
                ~old, -old, old * 2, old / 2, old + 8,    old + 1,    ~0ULL,   0xffffffff};
            for (int i = 0; i < 32; i++) numbers.push_back(random() >> (random() % 64));
            for (std::uint64_t number : numbers) {
                if (field.bytes < 8) number &= (std::uint64_t{1} << (8 * field.bytes)) - 1;
                if (number == old) continue;
                std::memcpy(reinterpret_cast<char*>(&image.lookup()) + field.at, &number, field.bytes);
                image.seal();
                refusal_of(image, fmt::format("{} {:x} instead of {:x}", field.name, number, old));
                image.lookup() = before;
                if (HasFailure()) return;
            }
        }
    }
}

/// Lanes of every width with another content: another key, a key twice, none, nothing that a lane may hold.
TEST(ExactImage, WithAnyLaneReplacedIsRefused) {
    std::mt19937_64 random(3);
    std::map<std::string, int> reasons;
    const struct {
        std::size_t keys;
        int rounds;
    } cases[] = {{10, 500}, {10'000, 500}, {1'000'000, 20}};
    for (const auto& c : cases) {
        Image image = image_of(c.keys, 0);
        const exact::Lanes lanes(geometry_of(image));
        __u64* words = image.filter()[SIEVE_EXACT_IPV4_LINE].word;
        for (int round = 0; round < c.rounds; round++) {
            const auto word = static_cast<std::uint32_t>(random() % geometry_of(image).words);
            const auto lane = static_cast<std::uint32_t>(random() % lanes.count());
            const std::uint64_t before = words[word];
            const std::uint64_t old = lanes.get(before, lane);
            std::uint64_t content = random() & lanes.none();
            switch (random() % 5) {
            case 0:
                content = lanes.none();
                break;
            case 1: // that of a lane elsewhere
                content = lanes.get(words[random() % geometry_of(image).words], 0);
                break;
            case 2: // that of a lane in the same word: often a copy
                content = lanes.get(before, static_cast<std::uint32_t>(random() % lanes.count()));
                break;
            case 3: // the same remainder, as if it were in its other word
                if (old != lanes.none()) content = lanes.other_content(old);
                break;
            default:
                break;
            }
            if (content == old) continue;
            words[word] = lanes.with(before, lane, content);
            image.seal();
            const std::string what =
                fmt::format("word {}, lane {}: {:x} instead of {:x}", word, lane, content, old);
            const std::string message = refusal_of(image, what);
            if (HasFailure()) return;
            // One lane more or less, or another key, is found by the sum; all else where it is.
            const bool by_sum = message.find("its filter lists") != std::string::npos;
            EXPECT_TRUE(by_sum || message.find(fmt::format("word {}", word)) != std::string::npos ||
                        message.find("a second copy") != std::string::npos)
                << what << ": " << message;
            reasons[by_sum ? "sum" : message.substr(message.rfind(": ") + 2)]++;
            words[word] = before;
        }
    }
    for (const char* reason :
         {"sum", "an entry beyond the range of remainders", "a second copy of an address"})
        EXPECT_GT(reasons[reason], 0) << reason;
}

} // namespace
} // namespace sieve
