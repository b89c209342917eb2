// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The C interface, on which other languages and older programs rely.
#include "libsieve/api/libsieve.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace {

// Returns an error's message and frees it.
std::string said(libsieve_error* error) {
    if (error == nullptr) return "no error";
    std::string message = libsieve_error_message(error);
    libsieve_error_free(error);
    return message;
}

libsieve_keys* addresses(int count) {
    libsieve_keys* keys = nullptr;
    EXPECT_TRUE(libsieve_keys_new(SIEVE_FIELD_SRC, &keys, nullptr));
    for (int i = 0; i < count; i++)
        EXPECT_TRUE(
            libsieve_keys_add_text(keys, fmt::format("192.0.{}.{}", i / 256, i % 256).c_str(), nullptr));
    return keys;
}

sieve_key key_of(const char* text) {
    sieve_key key{};
    EXPECT_TRUE(libsieve_parse_key(text, SIEVE_FIELD_SRC, &key, nullptr)) << text;
    return key;
}

TEST(Api, BuildsAnImageThatHoldsItsKeys) {
    libsieve_keys* keys = addresses(1000);
    EXPECT_EQ(libsieve_keys_count(keys), 1000U);
    libsieve_image* image = nullptr;
    ASSERT_TRUE(libsieve_build(keys, nullptr, &image, nullptr));
    EXPECT_EQ(libsieve_keys_count(keys), 0U) << "keys are consumed";
    libsieve_keys_free(keys);
    for (const char* text : {"192.0.0.0", "192.0.3.231"}) {
        const sieve_key key = key_of(text);
        EXPECT_TRUE(libsieve_image_contains(image, &key)) << text;
    }
    int matches = 0;
    for (int i = 0; i < 1000; i++) {
        const sieve_key key = key_of(fmt::format("10.1.{}.{}", i / 256, i % 256).c_str());
        matches += libsieve_image_contains(image, &key) ? 1 : 0;
    }
    EXPECT_LT(matches, 10) << "a rate of 2.5e-4 at 16 bits per key";
    libsieve_image_free(image);
}

TEST(Api, AnEntryMayBeAPrefixOrARange) {
    libsieve_keys* keys = nullptr;
    ASSERT_TRUE(libsieve_keys_new(SIEVE_FIELD_SRC, &keys, nullptr));
    ASSERT_TRUE(libsieve_keys_add_text(keys, "198.51.100.0/24", nullptr));
    ASSERT_TRUE(libsieve_keys_add_text(keys, "203.0.113.5-203.0.113.9", nullptr));
    ASSERT_TRUE(libsieve_keys_add_text(keys, "192.0.2.1", nullptr));
    libsieve_image* image = nullptr;
    libsieve_error* error = nullptr;
    ASSERT_TRUE(libsieve_build(keys, nullptr, &image, &error)) << said(error);
    for (const char* text : {"198.51.100.0", "198.51.100.255", "203.0.113.7", "192.0.2.1"}) {
        const sieve_key key = key_of(text);
        EXPECT_TRUE(libsieve_image_contains(image, &key)) << text;
    }
    libsieve_image_info info{};
    info.size = sizeof(info);
    libsieve_image_describe(image, &info);
    EXPECT_EQ(info.entries, 3U);
    EXPECT_GT(info.probes, 0U);
    libsieve_image_free(image);
    libsieve_keys_free(keys);
}

TEST(Api, AFeedIsAddedToTheKeysThatAreThere) {
    const sieve::test::Files files;
    const std::string mixed =
        files.feed("mixed", {"198.51.100.0/24", "203.0.113.5-203.0.113.9", "192.0.2.2"});
    libsieve_keys* keys = addresses(1);
    ASSERT_TRUE(libsieve_keys_add_feed(keys, mixed.c_str(), nullptr));
    EXPECT_EQ(libsieve_keys_count(keys), 4U);
    libsieve_error* error = nullptr;
    const std::string broken = files.feed("broken", {"192.0.2.3", "192.0.2.256"});
    EXPECT_FALSE(libsieve_keys_add_feed(keys, broken.c_str(), &error));
    sieve::expect_says(said(error));
    EXPECT_EQ(libsieve_keys_count(keys), 4U) << "a failed call changes nothing";
    libsieve_image* image = nullptr;
    ASSERT_TRUE(libsieve_build(keys, nullptr, &image, nullptr));
    libsieve_keys_free(keys);
    for (const char* text : {"192.0.0.0", "198.51.100.9", "203.0.113.7", "192.0.2.2"}) {
        const sieve_key key = key_of(text);
        EXPECT_TRUE(libsieve_image_contains(image, &key)) << text;
    }
    libsieve_image_free(image);

    ASSERT_TRUE(libsieve_keys_new(SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT, &keys, nullptr));
    const std::string flows = files.feed("flows", {"198.51.100.0/24 443", "192.0.2.1 22", "* 25"});
    ASSERT_TRUE(libsieve_keys_add_feed(keys, flows.c_str(), nullptr));
    EXPECT_EQ(libsieve_keys_count(keys), 3U);
    ASSERT_TRUE(libsieve_build(keys, nullptr, &image, &error)) << said(error);
    libsieve_keys_free(keys);
    libsieve_image_info info{};
    LIBSIEVE_INIT(info);
    libsieve_image_describe(image, &info);
    EXPECT_EQ(info.entries, 3U);
    libsieve_image_free(image);
}

TEST(Api, ErrorsHaveAKindAndASentence) {
    libsieve_error* error = nullptr;
    libsieve_image* image = nullptr;
    EXPECT_FALSE(libsieve_image_open("/nonexistent/set.sieve", &image, &error));
    EXPECT_EQ(image, nullptr);
    EXPECT_EQ(libsieve_error_kind(error), LIBSIEVE_ERROR_BAD_INPUT);
    sieve::expect_says(said(error));

    libsieve_keys* keys = addresses(10);
    EXPECT_FALSE(libsieve_keys_add_text(keys, "192.0.2.256", &error));
    sieve::expect_says(said(error));
    EXPECT_EQ(libsieve_keys_count(keys), 10U) << "a failed call changes nothing";
    libsieve_build_options options{};
    LIBSIEVE_INIT(options);
    options.kind = "quotient";
    EXPECT_FALSE(libsieve_build(keys, &options, &image, &error));
    EXPECT_EQ(libsieve_error_kind(error), LIBSIEVE_ERROR_INVALID);
    sieve::expect_says(said(error));
    EXPECT_FALSE(libsieve_build(keys, &options, &image, nullptr)) << "the error may be left out";
    libsieve_keys_free(keys);
    libsieve_keys_free(nullptr);
    libsieve_image_free(nullptr);
    libsieve_error_free(nullptr);
}

// A program compiled when the structures were shorter.
TEST(Api, OlderStructuresAreRespected) {
    libsieve_keys* keys = addresses(100);
    libsieve_build_options options{};
    options.size = offsetof(libsieve_build_options, fpr);
    options.bits_per_key = 24;
    options.fpr = 0.5; // beyond what this caller has: must not be read
    libsieve_image* image = nullptr;
    libsieve_error* error = nullptr;
    ASSERT_TRUE(libsieve_build(keys, &options, &image, &error)) << said(error);
    libsieve_keys_free(keys);
    libsieve_image_info info{};
    std::memset(&info, 0x5a, sizeof(info));
    info.size = offsetof(libsieve_image_info, label);
    libsieve_image_describe(image, &info);
    EXPECT_STREQ(info.kind, "xorsat");
    EXPECT_EQ(info.fields, 0x5a5a5a5aU) << "beyond what this caller has: must not be written";
    libsieve_image_free(image);
}

TEST(Api, SavesAndOpens) {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("api-test-{}.sieve", ::getpid())).string();
    libsieve_keys* keys = addresses(100);
    libsieve_build_options options{};
    LIBSIEVE_INIT(options);
    options.label = "a test";
    options.seed = 1;
    options.use_seed = true;
    libsieve_image* image = nullptr;
    ASSERT_TRUE(libsieve_build(keys, &options, &image, nullptr));
    libsieve_keys_free(keys);
    ASSERT_TRUE(libsieve_image_save(image, path.c_str(), nullptr));
    libsieve_image* again = nullptr;
    ASSERT_TRUE(libsieve_image_open(path.c_str(), &again, nullptr));
    std::uint32_t count = 0;
    std::uint32_t count_again = 0;
    const void* lines = libsieve_image_lines(image, &count);
    const void* lines_again = libsieve_image_lines(again, &count_again);
    ASSERT_EQ(count, count_again);
    EXPECT_EQ(std::memcmp(lines, lines_again, std::size_t{count} * 64), 0);
    libsieve_image_info info{};
    LIBSIEVE_INIT(info);
    libsieve_image_describe(again, &info);
    EXPECT_STREQ(info.label, "a test");
    EXPECT_EQ(info.built_at, 0U);
    libsieve_image_free(image);
    libsieve_image_free(again);
    std::filesystem::remove(path);
}

TEST(Api, PlansEveryKind) {
    libsieve_plan* plan = nullptr;
    ASSERT_TRUE(libsieve_plan_new(10'000, 1e-3, 0, &plan, nullptr));
    int recommended = 0;
    bool blocked = false;
    for (std::size_t i = 0; i < libsieve_plan_count(plan); i++) {
        libsieve_candidate candidate{};
        LIBSIEVE_INIT(candidate);
        ASSERT_TRUE(libsieve_plan_candidate(plan, i, &candidate));
        recommended += candidate.recommended ? 1 : 0;
        blocked = blocked || std::string(candidate.kind) == "blocked";
        if (candidate.infeasible == nullptr) {
            EXPECT_LE(candidate.predicted_fpr, 1.02e-3) << candidate.parameters;
        }
    }
    EXPECT_EQ(recommended, 1);
    EXPECT_TRUE(blocked);
    libsieve_candidate candidate{};
    LIBSIEVE_INIT(candidate);
    EXPECT_FALSE(libsieve_plan_candidate(plan, libsieve_plan_count(plan), &candidate));
    libsieve_plan_free(plan);
    // Neither a rate nor a memory: what a list of addresses gets.
    ASSERT_TRUE(libsieve_plan_new(10'000, 0, 0, &plan, nullptr));
    for (std::size_t i = 0; i < libsieve_plan_count(plan); i++) {
        LIBSIEVE_INIT(candidate);
        ASSERT_TRUE(libsieve_plan_candidate(plan, i, &candidate));
        EXPECT_EQ(candidate.recommended, std::string(candidate.kind) == "exact") << candidate.kind;
    }
    libsieve_plan_free(plan);
}

// Input that a table refuses before it asks the kernel, which a unit test must not ask.
TEST(Api, ATableTakesOnlyWhatMakesSense) {
    libsieve_table* table = nullptr;
    libsieve_error* error = nullptr;
    EXPECT_FALSE(libsieve_table_new("eth0", "sideways", &table, &error));
    sieve::expect_says(said(error));
    ASSERT_TRUE(libsieve_table_new("no-such-interface", nullptr, &table, nullptr));
    EXPECT_FALSE(libsieve_table_set_default(table, "count", &error));
    sieve::expect_says(said(error));
    EXPECT_TRUE(libsieve_table_set_default(table, "drop", nullptr));
    for (const char* wrong : {"count", "redirect=eth0", ""}) {
        EXPECT_FALSE(libsieve_table_set_unreadable(table, wrong, &error)) << wrong;
        EXPECT_EQ(libsieve_error_kind(error), LIBSIEVE_ERROR_INVALID) << wrong;
        EXPECT_FALSE(said(error).empty());
    }
    EXPECT_TRUE(libsieve_table_set_unreadable(table, "pass", nullptr));
    EXPECT_TRUE(libsieve_table_set_unreadable(table, "drop", nullptr));
    EXPECT_TRUE(libsieve_table_allow_lockout(table, nullptr));
    const sieve::test::Files files;
    const std::string listed = files.feed("listed", {"203.0.113.7", "203.0.113.0/30"});
    EXPECT_TRUE(libsieve_table_protect_list(table, listed.c_str(), nullptr));
    for (const char* path : {"no-such-list", "/dev/null"}) {
        EXPECT_FALSE(libsieve_table_protect_list(table, path, &error));
        EXPECT_EQ(libsieve_error_kind(error), LIBSIEVE_ERROR_BAD_INPUT);
        sieve::expect_says(said(error));
    }
    EXPECT_TRUE(libsieve_table_set_probation(table, 86400, nullptr));
    EXPECT_FALSE(libsieve_table_set_probation(table, 86401, nullptr));
    EXPECT_TRUE(libsieve_table_add(table, "odd", "odd.txt", "limit=1000/2000", nullptr));
    EXPECT_FALSE(libsieve_table_add(table, "odd", "odd.txt", "limit=0", nullptr));
    EXPECT_FALSE(libsieve_table_set_default(table, "limit=5", nullptr));
    EXPECT_FALSE(libsieve_table_add(table, "bad", "list.txt", "explode", &error));
    EXPECT_EQ(libsieve_error_kind(error), LIBSIEVE_ERROR_INVALID);
    libsieve_error_free(error);
    EXPECT_TRUE(libsieve_table_add(table, "bad", "list.txt", nullptr, nullptr));
    EXPECT_FALSE(libsieve_table_apply(table, &error));
    sieve::expect_says(said(error));
    libsieve_table_free(table);
    libsieve_table_free(nullptr);
}

// Whatever makes no sense is refused before the kernel is asked.
TEST(Api, ChangesThatMakeNoSense) {
    const auto refused = [](auto&& call) {
        libsieve_error* error = nullptr;
        ASSERT_FALSE(call(&error));
        EXPECT_EQ(libsieve_error_kind(error), LIBSIEVE_ERROR_INVALID);
        sieve::expect_says(said(error));
    };
    libsieve_change_options options;
    LIBSIEVE_INIT(options);
    const auto edit = [&](libsieve_error** error) {
        return libsieve_edit_set("eth0", "xdp", "bad", &options, error);
    };
    refused(edit);
    options.before = "other";
    options.last = true;
    refused(edit);
    refused([&](auto* error) { return libsieve_add_set("eth0", "xdp", "a", "list.txt", &options, error); });
    LIBSIEVE_INIT(options);
    options.action = "reject";
    refused(edit);
    options.action = "drop";
    options.probation = 86401;
    refused(edit);
    refused([](auto* error) { return libsieve_edit_set("eth0", "tap", "bad", nullptr, error); });
    refused([](auto* error) { return libsieve_unload("", nullptr, error); });
    refused([](auto* error) { return libsieve_edit_default("eth0", "xdp", "count", nullptr, error); });
    libsieve_keys* keys = addresses(1);
    libsieve_insert_options insertion;
    LIBSIEVE_INIT(insertion);
    insertion.seconds = 3650ULL * 86400 + 1;
    refused([&](auto* error) {
        return libsieve_insert("eth0", nullptr, "bad", keys, &insertion, nullptr, error);
    });
    LIBSIEVE_INIT(options);
    options.probation = 1;
    refused(
        [&](auto* error) { return libsieve_delete("eth0", nullptr, "bad", keys, &options, nullptr, error); });
    libsieve_keys_free(keys);
}

// What an option asks for is not left out in silence.
TEST(Api, AFunctionTakesTheOptionsThatFitIt) {
    using Options = libsieve_change_options;
    const std::pair<const char*, void (*)(Options&)> members[] = {
        {"action", [](Options& o) { o.action = "pass"; }},
        {"before", [](Options& o) { o.before = "other"; }},
        {"after", [](Options& o) { o.after = "other"; }},
        {"first", [](Options& o) { o.first = true; }},
        {"last", [](Options& o) { o.last = true; }},
        {"keep_counters", [](Options& o) { o.keep_counters = true; }},
        {"force", [](Options& o) { o.force = true; }},
        {"allow_lockout", [](Options& o) { o.allow_lockout = true; }},
        {"probation", [](Options& o) { o.probation = 1; }},
    };
    static constexpr const char* interface = "no-such-if0";
    static libsieve_keys* keys;
    keys = addresses(1);
    struct Function {
        bool (*call)(const Options* options, libsieve_error** error);
        std::set<std::string> taken;
    };
    const Function functions[] = {
        {[](const Options* o, libsieve_error** e) {
             return libsieve_edit_set(interface, nullptr, "a", o, e);
         },
         {"action", "before", "after", "first", "last", "keep_counters", "force", "allow_lockout",
          "probation"}},
        {[](const Options* o, libsieve_error** e) {
             return libsieve_add_set(interface, nullptr, "a", "list.txt", o, e);
         },
         {"action", "before", "after", "first", "last", "force", "allow_lockout", "probation"}},
        {[](const Options* o, libsieve_error** e) {
             return libsieve_swap_set(interface, nullptr, "a", "list.txt", o, e);
         },
         {"allow_lockout", "probation"}},
        {[](const Options* o, libsieve_error** e) {
             return libsieve_remove_set(interface, nullptr, "a", o, e);
         },
         {"force", "allow_lockout", "probation"}},
        {[](const Options* o, libsieve_error** e) {
             return libsieve_edit_default(interface, nullptr, "pass", o, e);
         },
         {"force", "allow_lockout", "probation"}},
        {[](const Options* o, libsieve_error** e) {
             return libsieve_edit_replies(interface, nullptr, "pass", 0, o, e);
         },
         {"allow_lockout", "probation"}},
        {[](const Options* o, libsieve_error** e) {
             return libsieve_delete(interface, nullptr, "a", keys, o, nullptr, e);
         },
         {"allow_lockout"}},
    };
    for (const Function& function : functions)
        for (const auto& [name, set] : members) {
            Options options;
            LIBSIEVE_INIT(options);
            set(options);
            libsieve_error* error = nullptr;
            EXPECT_FALSE(function.call(&options, &error)); // at least, there is no such interface
            const int kind = libsieve_error_kind(error);
            const std::string message = said(error);
            const bool refused = message.find("expected none but") != std::string::npos;
            EXPECT_EQ(refused, !function.taken.contains(name)) << name << ": " << message;
            if (!refused) continue;
            EXPECT_EQ(kind, LIBSIEVE_ERROR_INVALID);
            for (const std::string& one : function.taken)
                EXPECT_NE(message.find(one), std::string::npos) << message;
        }
    libsieve_keys_free(keys);
}

} // namespace
