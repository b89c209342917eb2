// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Random lists of addresses, prefixes and ranges, and random exceptions, through every front end that builds
// a set. An address is a member if the list has it and the exceptions do not; a plain table of the addresses
// of three small windows says so.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "libsieve/api/libsieve.h"
#include "libsieve/control/spec/source.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/service/sources/sandbox.hpp"
#include "unit/service/in_process.hpp"

namespace sieve::service {
namespace {

constexpr std::uint32_t window_size = 512;
constexpr uint128 ipv4_window = uint128{0xffff} << 32 | 0xcb007000; // 203.0.112.0
// Across the end of a /64, which the kind `ranges` stores in parts of their own.
constexpr uint128 ipv6_window = uint128{0x20010db800000000} << 64 | 0xffffffffffffff00;
constexpr uint128 low_window = uint128{0xfffe} << 32 | 0xffffff00; // up to the v4-mapped addresses
constexpr uint128 windows[] = {ipv4_window, ipv6_window, low_window};

bool is_quad(uint128 address) {
    return address >> 32 == 0xffff;
}

std::string text_of(uint128 address) {
    const auto low = static_cast<std::uint32_t>(address);
    if (is_quad(address))
        return fmt::format("{}.{}.{}.{}", low >> 24, low >> 16 & 255, low >> 8 & 255, low & 255);
    std::string text;
    for (int group = 7; group >= 0; group--)
        text += fmt::format("{:x}{}", static_cast<unsigned>(address >> 16 * group & 0xffff),
                            group == 0 ? "" : ":");
    return text;
}

// One list, as text and as a table of the windows' addresses.
struct Listed {
    std::string text{};
    std::vector<bool> has = std::vector<bool>(std::size(windows) * window_size);

    void add(std::size_t window, std::uint32_t first, std::uint32_t last) {
        std::fill(has.begin() + static_cast<std::ptrdiff_t>(window * window_size + first),
                  has.begin() + static_cast<std::ptrdiff_t>(window * window_size + last + 1), true);
    }
    [[nodiscard]] bool any() const { return std::find(has.begin(), has.end(), true) != has.end(); }
};

// The last window ends where the v4-mapped addresses begin.
std::uint32_t size_of(std::size_t window) {
    return windows[window] == low_window ? 256 : window_size;
}

Listed random_list(std::mt19937& random, std::uint32_t entries) {
    Listed list;
    for (; entries > 0; entries--) {
        const std::size_t window = random() % std::size(windows);
        const std::uint32_t size = size_of(window);
        const auto at = static_cast<std::uint32_t>(random() % size);
        std::uint32_t last = at;
        std::uint32_t first = at;
        const uint128 base = windows[window];
        switch (random() % 3) {
        case 0:
            list.text += text_of(base + at) + "\n";
            break;
        case 1:
            last = std::min(at + static_cast<std::uint32_t>(random() % 40), size - 1);
            list.text += text_of(base + at) + "-" + text_of(base + last) + "\n";
            break;
        default: {
            const std::uint32_t host = random() % 8;
            first = at & ~((1U << host) - 1);
            last = first + (1U << host) - 1;
            list.text += fmt::format("{}/{}\n", text_of(base + first), (is_quad(base) ? 32 : 128) - host);
        }
        }
        list.add(window, first, last);
    }
    return list;
}

class AnyExceptions : public testing::Test {
  protected:
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / fmt::format("sieve-exceptions-{}", ::getpid());
    Listed list_;
    Listed exceptions_;

    AnyExceptions() { std::filesystem::create_directories(folder_); }
    ~AnyExceptions() override { std::filesystem::remove_all(folder_); }
    AnyExceptions(const AnyExceptions&) = delete;
    AnyExceptions& operator=(const AnyExceptions&) = delete;

    [[nodiscard]] std::string list_path() const { return folder_ / "list"; }
    [[nodiscard]] std::string exceptions_path() const { return folder_ / "exceptions"; }

    void put(Listed list, Listed exceptions) {
        list_ = std::move(list);
        exceptions_ = std::move(exceptions);
        std::ofstream(list_path()) << list_.text;
        std::ofstream(exceptions_path()) << exceptions_.text;
    }
    void draw(std::uint32_t seed) {
        std::mt19937 random(seed);
        Listed list = random_list(random, 1 + random() % 30);
        put(std::move(list), random_list(random, random() % 20));
    }

    [[nodiscard]] bool member(std::size_t i) const { return list_.has[i] && !exceptions_.has[i]; }
    [[nodiscard]] bool any_member() const {
        for (std::size_t i = 0; i < list_.has.size(); i++)
            if (member(i)) return true;
        return false;
    }

    static sieve_key key_of(std::size_t i) {
        const uint128 address = windows[i / window_size] + i % window_size;
        sieve_key key{};
        key.word[0] = static_cast<std::uint64_t>(address >> 64);
        key.word[1] = static_cast<std::uint64_t>(address);
        return key;
    }
    [[nodiscard]] static bool is_asked(std::size_t i) { return i % window_size < size_of(i / window_size); }
    // A filter may match other non-members, and an exception if verification will reject it.
    void ask(const std::string& front_end, const auto& contains, bool exact, bool verified = false) const {
        for (std::size_t i = 0; i < list_.has.size(); i++) {
            if (!is_asked(i)) continue;
            const bool holds = contains(key_of(i));
            const bool free = !exact && !member(i) && (verified || !exceptions_.has[i]);
            ASSERT_TRUE(free || holds == member(i))
                << front_end << ": " << text_of(windows[i / window_size] + i % window_size)
                << (holds ? " matches" : " is missed") << "\nlist:\n"
                << list_.text << "exceptions:\n"
                << exceptions_.text;
        }
    }
    void ask(const std::string& front_end, const Image& image, bool verified = false) const {
        ask(
            front_end, [&](const sieve_key& key) { return image.contains(key); },
            kind_of(image.lookup()).exact() != nullptr, verified);
    }
    // Nothing is left, or somebody has refused the list.
    void expect_nothing_left(const std::string& front_end, const std::string& said) const {
        EXPECT_FALSE(any_member()) << front_end << ": " << said << "\nlist:\n"
                                   << list_.text << "exceptions:\n"
                                   << exceptions_.text;
        EXPECT_NE(said.find("every entry of the list is an exception"), std::string::npos) << said;
    }

    [[nodiscard]] control::FeedSpec feed() const {
        control::FeedSpec feed;
        feed.except = exceptions_path();
        feed.build.trials = 2000;
        return feed;
    }

    void build() const {
        std::vector<Input> inputs;
        inputs.push_back(std::move(*Input::of(list_path())));
        Input exceptions = std::move(*Input::of(exceptions_path()));
        const auto built = control::build_from_feeds(inputs, feed(), {}, &exceptions);
        if (!built) return expect_nothing_left("build", built.error().message);
        ask("build", built->image);
        if (kind_of(built->image.lookup()).exact() != nullptr) {
            EXPECT_TRUE(built->image.exceptions().empty()) << "an exact set has nothing to promise";
        }
    }

    void call_library() const {
        const auto keys_of = [](const std::string& path) {
            libsieve_keys* keys = nullptr;
            libsieve_error* error = nullptr;
            EXPECT_TRUE(libsieve_keys_new(SIEVE_FIELD_SRC, &keys, &error));
            if (!libsieve_keys_add_feed(keys, path.c_str(), &error)) libsieve_error_free(error);
            return keys;
        };
        libsieve_keys* const keys = keys_of(list_path());
        libsieve_keys* const exceptions = keys_of(exceptions_path());
        libsieve_build_options options{};
        options.size = sizeof(options);
        options.exceptions = exceptions;
        libsieve_image* image = nullptr;
        libsieve_error* error = nullptr;
        if (libsieve_build(keys, &options, &image, &error)) {
            libsieve_image_info info{};
            info.size = sizeof(info);
            libsieve_image_describe(image, &info);
            ask(
                "libsieve", [&](const sieve_key& key) { return libsieve_image_contains(image, &key); },
                kind_of(parse_kind(info.kind).value()).exact() != nullptr);
            libsieve_image_free(image);
        } else {
            expect_nothing_left("libsieve", libsieve_error_message(error));
            libsieve_error_free(error);
        }
        libsieve_keys_free(keys);
        libsieve_keys_free(exceptions);
    }

    void load(bool verify) const {
        control::SetSpec spec;
        spec.name = "bad";
        spec.sources = {list_path()};
        spec.feed = feed();
        if (verify) spec.verify = control::Verification{};
        const auto opened = control::open_set(spec, {});
        if (!opened) return expect_nothing_left("load", opened.error().message);
        ask("load", opened->image, verify);
        const bool exact = kind_of(opened->image.lookup()).exact() != nullptr;
        EXPECT_EQ(opened->exact.has_value(), verify && !exact);
    }

    void serve(bool verify) const {
        SandboxSettings sandbox = test::in_process();
        const control::FeedSpec spec = feed();
        ReadRequest request{
            .set = "bad", .origins = {FileOrigin{list_path()}}, .feed = spec, .sandbox = sandbox};
        const auto read = read_in_sandbox(request);
        if (!read) return expect_nothing_left("service", read.error().error.message);
        const auto& list = std::get<ReadList>(*read);
        if (list.list->entries() == 0) { // the guards have a say in that
            EXPECT_FALSE(any_member()) << "service\nlist:\n"
                                       << list_.text << "exceptions:\n"
                                       << exceptions_.text;
            return;
        }
        const auto built = build_in_sandbox({"bad", spec, verify, sandbox}, list);
        ASSERT_TRUE(built) << built.error().message << "\nlist:\n"
                           << list_.text << "exceptions:\n"
                           << exceptions_.text;
        ask("service", built->image, verify);
        const bool exact = kind_of(built->image.lookup()).exact() != nullptr;
        EXPECT_EQ(!built->exact.empty(), verify && !exact);
    }
};

TEST_F(AnyExceptions, LeaveTheOthersInEveryFrontEnd) {
    for (std::uint32_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); seed++) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        draw(seed);
        build();
        load(false);
        load(true);
        serve(false);
        call_library();
        serve(true);
    }
}

// What is left of a range may be one address, and what is left of a list may be single addresses.
TEST_F(AnyExceptions, MayLeaveSingleAddresses) {
    for (const char* out :
         {"203.0.112.1", "203.0.112.0/24\n203.0.113.2-203.0.113.255", "203.0.112.1-203.0.113.255"}) {
        Listed list;
        list.text = "203.0.112.0/23\n";
        list.add(0, 0, 511);
        Listed exceptions;
        exceptions.text = std::string(out) + "\n";
        if (exceptions.text.starts_with("203.0.112.1\n"))
            exceptions.add(0, 1, 1);
        else if (exceptions.text.starts_with("203.0.112.0/24")) {
            exceptions.add(0, 0, 255);
            exceptions.add(0, 258, 511);
        } else
            exceptions.add(0, 1, 511);
        put(std::move(list), std::move(exceptions));
        SCOPED_TRACE(out);
        build();
        load(false);
        load(true);
        serve(false);
        call_library();
        serve(true);
    }
}

// A file of exceptions in which there is none, or nothing at all.
TEST_F(AnyExceptions, MayBeNone) {
    Listed list;
    list.text = "203.0.112.0/24\n203.0.113.9\n";
    list.add(0, 0, 255);
    list.add(0, 265, 265);
    for (const char* none : {"", "\n\n", "# none yet\n"}) {
        Listed exceptions;
        exceptions.text = none;
        put(list, exceptions);
        SCOPED_TRACE(none);
        build();
        load(false);
        serve(false);
        call_library();
        serve(true);
    }
}

} // namespace
} // namespace sieve::service
