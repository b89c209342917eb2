// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A build with a memory limit makes the same image as a build in memory.
#include "libsieve/build/spilled_keys.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/members.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

constexpr std::uint64_t MiB = 1 << 20;

// Addresses out of twice as many, so that some occur several times.
KeySet some_keys(std::uint32_t fields, std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    KeySet keys(fields);
    for (std::size_t i = 0; i < count; i++) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(static_cast<std::uint32_t>(random() % (2 * count)) * 2'654'435'761U);
        key.word[3] = sieve_v4_mapped(static_cast<std::uint32_t>(random() % 4));
        key.word[4] = random() % 2 == 0 ? 6 : 17;
        keys.add(key);
    }
    return keys;
}

// The same keys, in pieces of random sizes.
Result<SpilledKeys> spilled(const KeySet& keys, const BuildOptions& options, std::uint64_t seed,
                            const Exceptions& exceptions = {}) {
    SIEVE_ASSIGN(SpilledKeys all, SpilledKeys::create(keys.fields(), options, exceptions));
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < keys.size();) {
        KeySet piece(keys.fields());
        for (std::size_t n = random() % (keys.size() / 2 + 2); n > 0 && i < keys.size(); n--)
            piece.add(keys.at(i++));
        SIEVE_TRY(all.add(piece));
    }
    return all;
}

std::size_t open_files() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count++;
    return count;
}

// Every size, limit and number of threads, for sets of less than one shard to many: the bytes are those of
// the build in memory.
TEST(SpilledKeys, MakeTheImageOfABuildInMemory) {
    struct Shape {
        std::uint32_t fields;
        std::size_t keys;
        double bits_per_key;
        std::uint32_t choices;
        sieve_kind kind = SIEVE_KIND_BLOCKED;
        std::uint32_t rounds = 3;
    };
    std::uint64_t seed = 1;
    for (const Shape& shape : {Shape{SIEVE_FIELD_SRC, 1, 16, 2}, Shape{SIEVE_FIELD_SRC, 700, 16, 2},
                               Shape{SIEVE_FIELD_SRC, 60'000, 128, 3}, Shape{SIEVE_FIELD_DST, 400'000, 16, 2},
                               Shape{SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_PROTO, 90'000, 100, 1},
                               Shape{SIEVE_FIELD_SRC, 700, 16, 2, SIEVE_KIND_DLEFT64},
                               Shape{SIEVE_FIELD_SRC, 900'000, 16, 3, SIEVE_KIND_DLEFT64},
                               Shape{SIEVE_FIELD_SRC, 600'000, 16, 2, SIEVE_KIND_DLEFT64, 0},
                               Shape{SIEVE_FIELD_SRC, 520'000, 8, 2, SIEVE_KIND_DLEFT64},
                               Shape{SIEVE_FIELD_SRC, 450'000, 16, 4, SIEVE_KIND_DLEFT64},
                               Shape{SIEVE_FIELD_DST, 600'000, 20, 2, SIEVE_KIND_DLEFT128}}) {
        const KeySet keys = some_keys(shape.fields, shape.keys, ++seed);
        BuildOptions options;
        options.seed = seed;
        options.trials = 100'000;
        options.bits_per_key = shape.bits_per_key;
        options.kind.kind = shape.kind;
        options.kind.choices = shape.choices;
        options.kind.rounds = shape.rounds;
        const auto expected = build_set(keys, options, {});
        ASSERT_TRUE(expected) << expected.error().message;
        for (const std::uint64_t limit : {16 * MiB, 64 * MiB})
            for (const std::uint32_t threads : {1U, 3U}) {
                options.memory_limit = limit;
                options.threads = threads;
                auto taken = spilled(keys, options, seed + threads);
                ASSERT_TRUE(taken) << taken.error().message;
                double progress = 0;
                const auto built = build_set(std::move(*taken), options,
                                             [&](std::string_view, double share) { progress = share; });
                ASSERT_TRUE(built) << built.error().message;
                EXPECT_EQ(progress, 1);
                ASSERT_EQ(built->image.bytes(), expected->image.bytes());
                EXPECT_EQ(std::memcmp(built->image.lines().data(), expected->image.lines().data(),
                                      expected->image.bytes()),
                          0)
                    << shape.keys << " keys, limit " << limit << ", threads " << threads;
                EXPECT_EQ(built->report.duplicates, expected->report.duplicates);
                EXPECT_EQ(built->report.measured_trials, expected->report.measured_trials);
            }
    }
}

// Addresses that are not among the keys.
std::vector<sieve_key> non_members(const KeySet& keys, std::size_t count, std::uint64_t seed) {
    std::set<std::uint64_t> members;
    for (std::size_t i = 0; i < keys.size(); i++) members.insert(keys.at(i).word[1]);
    std::mt19937_64 random(seed);
    std::vector<sieve_key> others;
    while (others.size() < count) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(static_cast<std::uint32_t>(random()));
        if (!members.contains(key.word[1])) others.push_back(key);
    }
    return others;
}

// With exceptions, several secrets have to be drawn. They are those of the build in memory.
TEST(SpilledKeys, TryOtherSecretsAsABuildInMemoryDoes) {
    std::uint32_t most_tries_seen = 1;
    for (std::uint64_t seed = 1; seed <= 6; seed++) {
        const KeySet keys = some_keys(SIEVE_FIELD_SRC, 40'000, seed);
        Members not_matching(SIEVE_FIELD_SRC);
        for (const sieve_key& key : non_members(keys, 40, seed)) not_matching.keys.add(key);
        const Exceptions exceptions{.lines = prefixes_of(not_matching)};
        BuildOptions options;
        options.seed = seed;
        options.trials = 50'000;
        options.bits_per_key = 6; // a rate of 4%: 5 tries on average
        options.kind.kind = SIEVE_KIND_BLOCKED;
        options.kind.rounds = 2;
        const auto expected = build_set(Members(keys, {}), options, {}, exceptions);
        ASSERT_TRUE(expected) << expected.error().message;
        most_tries_seen = std::max(most_tries_seen, expected->report.tries);
        options.memory_limit = 16 * MiB;
        auto taken = spilled(keys, options, seed, exceptions);
        ASSERT_TRUE(taken) << taken.error().message;
        const auto built = build_set(std::move(*taken), options, {}, exceptions);
        ASSERT_TRUE(built) << built.error().message;
        EXPECT_EQ(built->report.tries, expected->report.tries);
        ASSERT_EQ(built->image.bytes(), expected->image.bytes());
        EXPECT_EQ(
            std::memcmp(built->image.lines().data(), expected->image.lines().data(), expected->image.bytes()),
            0);
    }
    EXPECT_GT(most_tries_seen, 1U) << "no build had to try again";
}

// Without a seed, keys that are to be spared do not match, unless they are members.
TEST(SpilledKeys, SpareWhatABuildInMemorySpares) {
    const KeySet keys = some_keys(SIEVE_FIELD_SRC, 40'000, 3);
    Exceptions exceptions{.spared = non_members(keys, 40, 3)};
    exceptions.spared.push_back(keys.at(7));
    BuildOptions options;
    options.trials = 50'000;
    options.bits_per_key = 6;
    options.kind.kind = SIEVE_KIND_BLOCKED;
    options.kind.rounds = 2;
    options.memory_limit = 16 * MiB;
    constexpr std::uint32_t rounds = 12;
    std::uint32_t tries = 0;
    for (std::uint64_t round = 0; round < rounds; round++) {
        auto taken = spilled(keys, options, round, exceptions);
        ASSERT_TRUE(taken) << taken.error().message;
        const auto built = build_set(std::move(*taken), options, {}, exceptions);
        ASSERT_TRUE(built) << built.error().message;
        EXPECT_EQ(built->report.spared, exceptions.spared.size());
        for (const sieve_key& key : exceptions.spared)
            EXPECT_EQ(built->image.contains(key), &key == &exceptions.spared.back());
        for (std::size_t i = 0; i < keys.size(); i++) ASSERT_TRUE(built->image.contains(keys.at(i)));
        tries += built->report.tries;
    }
    // Each first try passes with a chance of about a fifth: all of them, once in 10^8 runs.
    EXPECT_GT(tries, rounds);
}

// Nobody else can read what is on disk, and nothing is left of it. Keys are there only if they may be needed.
TEST(SpilledKeys, LeaveNoNameBehind) {
    char folder[] = "/tmp/sieve-spill-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    const char* before = std::getenv("TMPDIR");
    const std::string kept = before != nullptr ? before : "";
    ::setenv("TMPDIR", folder, 1);
    const std::size_t files = open_files();
    for (const bool spare : {false, true}) {
        BuildOptions options;
        options.memory_limit = 16 * MiB;
        const KeySet keys = some_keys(SIEVE_FIELD_SRC, 200'000, 3);
        Exceptions exceptions;
        if (spare) exceptions.spared = {keys.at(0)};
        const auto taken = spilled(keys, options, 1, exceptions);
        ASSERT_TRUE(taken) << taken.error().message;
        EXPECT_TRUE(std::filesystem::is_empty(folder));
        std::size_t found = 0;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;
            const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
            if (!target.starts_with(folder)) continue;
            struct stat status {};
            ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
            EXPECT_EQ(status.st_mode & 0777, 0600U);
            EXPECT_EQ(status.st_nlink, 0U);
            EXPECT_GT(status.st_size, 0);
            found++;
        }
        EXPECT_EQ(found, spare ? 2U : 1U);
    }
    EXPECT_EQ(open_files(), files);
    if (before != nullptr)
        ::setenv("TMPDIR", kept.c_str(), 1);
    else
        ::unsetenv("TMPDIR");
    std::filesystem::remove_all(folder);
}

// A list whose kind nobody chose must not need all of its keys because it is long.
TEST(SpilledKeys, ChooseAKindWithShards) {
    BuildOptions options;
    options.kind.kind = automatic_kind;
    options.memory_limit = 16 * MiB;
    const auto build = [&]() -> Result<BuiltSet> {
        SIEVE_ASSIGN(SpilledKeys keys, spilled(some_keys(SIEVE_FIELD_SRC, 1000, 1), options, 1));
        return build_set(std::move(keys), options, {});
    };
    const auto built = build();
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->image.lookup().kind, SIEVE_KIND_BLOCKED);
    for (const sieve_kind kind : {SIEVE_KIND_XORSAT, SIEVE_KIND_EXACT}) {
        options.kind.kind = kind;
        EXPECT_FALSE(build()) << kind_name(kind);
    }
}

TEST(SpilledKeys, SayWhatIsWrong) {
    BuildOptions options;
    options.memory_limit = 16 * MiB - 1;
    expect_error(check_build_options(options), ErrorKind::invalid_request);

    options.memory_limit = 16 * MiB;
    options.kind.kind = SIEVE_KIND_BLOOM;
    expect_error(SpilledKeys::create(SIEVE_FIELD_SRC, options), ErrorKind::invalid_request);

    // A filter that is larger than the limit.
    options.kind.kind = SIEVE_KIND_BLOCKED;
    options.bits_per_key = 256;
    options.seed = 1;
    auto taken = spilled(some_keys(SIEVE_FIELD_SRC, 700'000, 3), options, 1);
    ASSERT_TRUE(taken) << taken.error().message;
    expect_error(build_set(std::move(*taken), options, {}), ErrorKind::invalid_request);

    const char* before = std::getenv("TMPDIR");
    const std::string kept = before != nullptr ? before : "";
    ::setenv("TMPDIR", "/nowhere/at/all", 1);
    expect_error(SpilledKeys::create(SIEVE_FIELD_SRC, options), ErrorKind::bad_input);
    // A disk that takes no more; the kernel calls a limit of files EFBIG.
    ::setenv("TMPDIR", "/tmp", 1);
    rlimit files{};
    ::getrlimit(RLIMIT_FSIZE, &files);
    const rlimit few{.rlim_cur = MiB, .rlim_max = files.rlim_max};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &few);
    const auto full = spilled(some_keys(SIEVE_FIELD_SRC, 500'000, 3), options, 1);
    ::setrlimit(RLIMIT_FSIZE, &files);
    ::signal(SIGXFSZ, SIG_DFL);
    expect_error(full, ErrorKind::bad_input);
    if (before != nullptr)
        ::setenv("TMPDIR", kept.c_str(), 1);
    else
        ::unsetenv("TMPDIR");
}

} // namespace
} // namespace sieve
