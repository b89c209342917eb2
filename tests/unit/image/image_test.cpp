// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/image/image.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <xxhash.h>

#include "bpf/scarce.hpp"
#include "libsieve/build/set_builder.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

// A folder that is removed with the test.
class ImageFile : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / ("sieve-image-" + std::to_string(::getpid()));
        std::filesystem::create_directories(folder_);
        path_ = folder_ / "set.sieve";
        KeySet keys(SIEVE_FIELD_SRC);
        for (std::uint32_t i = 0; i < 500; i++) {
            sieve_key key{};
            key.word[1] = sieve_v4_mapped(i * 2654435761U);
            keys.add(key);
        }
        BuildOptions options;
        options.seed = 5;
        options.label = "a test";
        auto built = build_set(keys, options, {});
        ASSERT_TRUE(built) << built.error().message;
        ASSERT_TRUE(built->image.save(path_));
        bytes_ = read(path_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    static std::vector<char> read(const std::filesystem::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }
    void write(const std::vector<char>& bytes) const {
        std::ofstream(path_, std::ios::binary | std::ios::trunc)
            .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    // Whether a load fails as bad input and names the file.
    [[nodiscard]] bool is_refused() const {
        const auto loaded = Image::load(path_);
        return !loaded && loaded.error().kind == ErrorKind::bad_input &&
               loaded.error().message.find(path_.string()) != std::string::npos;
    }
    void refused() const { expect_error(Image::load(path_), ErrorKind::bad_input); }
    // Sets a number in the file and corrects the checksum, so that only the check under test can object.
    template <class T>
    std::vector<char> with(std::size_t offset, T value) const {
        std::vector<char> bytes = bytes_;
        std::memcpy(bytes.data() + offset, &value, sizeof(value));
        const std::size_t at = SIEVE_FILE_LINE * SIEVE_LINE_BYTES + offsetof(sieve_file, checksum);
        const std::uint64_t sum =
            XXH3_64bits_withSeed(bytes.data() + at + 8, bytes.size() - at - 8, XXH3_64bits(bytes.data(), at));
        std::memcpy(bytes.data() + at, &sum, sizeof(sum));
        return bytes;
    }

    std::filesystem::path folder_;
    std::filesystem::path path_;
    std::vector<char> bytes_;
};

TEST_F(ImageFile, ComesBackAsItWas) {
    const auto image = Image::load(path_);
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->bytes(), bytes_.size());
    EXPECT_EQ(image->file().keys, 500U);
    EXPECT_STREQ(reinterpret_cast<const char*>(image->file().label), "a test");
    EXPECT_EQ(image->witnesses().size(), 64U);
    for (const auto& witness : image->witnesses()) EXPECT_TRUE(image->contains(witness.key));
    EXPECT_EQ(std::filesystem::status(path_).permissions() & std::filesystem::perms::all,
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
        << "an image holds secret keys";
}

// Every single flipped bit is noticed, wherever it is.
TEST_F(ImageFile, RefusesEveryFlippedBit) {
    for (std::size_t bit = 0; bit < bytes_.size() * 8; bit += 37) {
        std::vector<char> bytes = bytes_;
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
        write(bytes);
        ASSERT_TRUE(is_refused()) << "bit " << bit;
    }
}

TEST_F(ImageFile, RefusesEveryTruncation) {
    for (std::size_t size = 0; size < bytes_.size(); size += 31) {
        write({bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size)});
        ASSERT_TRUE(is_refused()) << size << " bytes";
    }
    std::vector<char> longer = bytes_;
    longer.resize(longer.size() + SIEVE_LINE_BYTES);
    write(longer);
    refused();
}

TEST_F(ImageFile, RefusesForeignFilesAndSaysWhy) {
    write(std::vector<char>(6400, 'x'));
    refused();
    write({});
    refused();
    write(with(SIEVE_FILE_LINE * SIEVE_LINE_BYTES + offsetof(sieve_file, version),
               std::uint32_t{SIEVE_IMAGE_VERSION + 1}));
    refused();
    write(with(SIEVE_FILE_LINE * SIEVE_LINE_BYTES + offsetof(sieve_file, version),
               std::uint32_t{SIEVE_IMAGE_VERSION - 1}));
    refused();
    std::filesystem::remove(path_);
    refused();
    std::filesystem::create_directory(path_);
    refused();
}

// A consistent lie: the checksum is right, but the content is impossible.
TEST_F(ImageFile, RefusesAGeometryThatCannotBe) {
    write(with(offsetof(sieve_lookup, kind), std::uint8_t{200}));
    refused();
    write(with(offsetof(sieve_lookup, fields), std::uint8_t{0}));
    refused();
    write(with(offsetof(sieve_lookup, choices), std::uint8_t{0}));
    refused();
    write(with(offsetof(sieve_lookup, hashes), std::uint8_t{77}));
    refused();
    write(with(offsetof(sieve_lookup, buckets), std::uint32_t{0x7fffffff}));
    refused();
    write(with(offsetof(sieve_lookup, buckets), std::uint32_t{0}));
    EXPECT_TRUE(is_refused());
    write(with(SIEVE_FILE_LINE * SIEVE_LINE_BYTES + offsetof(sieve_file, witnesses),
               std::uint32_t{0xfffffff0}));
    EXPECT_TRUE(is_refused());
    write(with(SIEVE_FILE_LINE * SIEVE_LINE_BYTES + offsetof(sieve_file, keys), std::uint64_t{0}));
    refused();
    write(with(SIEVE_FILE_LINE * SIEVE_LINE_BYTES + offsetof(sieve_file, expected_fpr), rate_to_bits(1.5)));
    refused();
    write(with(SIEVE_FILE_LINE * SIEVE_LINE_BYTES + offsetof(sieve_file, label) + SIEVE_LINE_BYTES - 1, 'x'));
    refused();
}

// A file is measured before it is read. The length of a pipe is unknown.
TEST_F(ImageFile, RefusesAStreamThatGoesOn) {
    const std::filesystem::path fifo = folder_ / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    for (const std::size_t more : {0, 1, 64}) {
        std::vector<char> bytes = bytes_;
        bytes.resize(bytes.size() + more);
        std::thread writer([&] {
            std::ofstream(fifo, std::ios::binary)
                .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        });
        const auto loaded = Image::load(fifo);
        writer.join();
        EXPECT_EQ(loaded.has_value(), more == 0) << more;
        if (!loaded) {
            expect_error(loaded, ErrorKind::bad_input);
        }
    }
}

TEST_F(ImageFile, IsToldByItsFirstBytes) {
    const auto looks_like_one = [&](std::size_t bytes, char first) {
        std::vector<char> content(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(bytes));
        if (bytes > 0) content[0] = first;
        write(content);
        auto input = Input::of(path_);
        EXPECT_TRUE(input);
        const auto told = is_image(*input);
        EXPECT_TRUE(told);
        return told.value_or(false);
    };
    EXPECT_TRUE(looks_like_one(bytes_.size(), bytes_[0]));
    EXPECT_TRUE(looks_like_one(4, bytes_[0])); // though it is cut
    EXPECT_FALSE(looks_like_one(3, bytes_[0]));
    EXPECT_FALSE(looks_like_one(0, bytes_[0]));
    EXPECT_FALSE(looks_like_one(bytes_.size(), '1'));
}

TEST(Image, ThatCannotBeHeldIsRefused) {
    expect_error(Image::create(std::uint64_t{1} << 32, 1), ErrorKind::bad_input);
    const auto beyond_memory = [] {
        const test::Limit little(RLIMIT_AS, test::addresses_left(std::size_t{1} << 20));
        return Image::create(std::uint64_t{1} << 20, 1);
    }();
    expect_error(beyond_memory, ErrorKind::out_of_memory);
}

// An image from a builder is checked like one from a file.
TEST(Image, InMemoryIsCheckedToo) {
    Image image = std::move(*Image::create(4, 1));
    EXPECT_FALSE(image.check("built image")); // it has no kind
    image.lookup().kind = SIEVE_KIND_BLOCKED;
    image.file().lines++;
    expect_error(image.check("built image"), ErrorKind::bad_input);
}

TEST_F(ImageFile, ThatCannotBeWrittenLeavesNothing) {
    auto image = Image::load(path_);
    ASSERT_TRUE(image);
    const auto nowhere = image->save(folder_ / "no" / "such" / "folder.sieve");
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().kind, ErrorKind::bad_input);
    std::filesystem::create_directories(folder_ / "occupied" / "inside");
    ASSERT_FALSE(image->save(folder_ / "occupied"));
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) files++;
    EXPECT_EQ(files, 2U) << "a temporary file was left behind";
}

// The bytes of a fixed build are pinned. A change of them is a change of the format, of the builder, or of
// the keys that measure the rate. For a change of the format, raise SIEVE_IMAGE_VERSION.
TEST_F(ImageFile, IsGolden) {
    EXPECT_EQ(bytes_.size(), 5504U);
    EXPECT_EQ(XXH3_64bits(bytes_.data(), bytes_.size()), 9711303458456740903U);
}

} // namespace
} // namespace sieve
