// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What docs/library.md promises to a child of fork(2): it may build, ask and save, whatever other threads of
// its parent were at.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/api/libsieve.h"
#include "unit/control/files.hpp"

namespace {

constexpr unsigned longest_child = 120; // seconds: ends a child that hangs

bool builds(const std::string& feed, const char* kind, const std::string& output) {
    libsieve_keys* keys = nullptr;
    libsieve_image* image = nullptr;
    libsieve_build_options options{};
    LIBSIEVE_INIT(options);
    options.kind = kind;
    options.threads = 8;
    sieve_key key{};
    bool fine = libsieve_keys_new(SIEVE_FIELD_SRC, &keys, nullptr) &&
                libsieve_keys_add_feed(keys, feed.c_str(), nullptr) &&
                libsieve_build(keys, &options, &image, nullptr) &&
                libsieve_parse_key("10.0.1.7", SIEVE_FIELD_SRC, &key, nullptr) &&
                libsieve_image_contains(image, &key);
    if (fine && !output.empty()) fine = libsieve_image_save(image, output.c_str(), nullptr);
    libsieve_image_free(image);
    libsieve_keys_free(keys);
    return fine;
}

TEST(Fork, AChildBuildsWhileThreadsOfItsParentBuild) {
    const sieve::test::Files files;
    std::vector<std::string> entries;
    for (int i = 0; i < 2000; i++)
        entries.push_back("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256));
    const std::string feed = files.feed("feed", entries);
    std::atomic<bool> stop = false;
    std::atomic<int> built = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&, i] {
            while (!stop)
                if (builds(feed, i % 2 == 0 ? "xorsat" : "ddlcbf", {})) {
                    built++;
                    built.notify_one();
                }
        });
    for (int i = 0; i < 20; i++) {
        const int before = built;
        built.wait(before);
        const std::string output = files.path("image-" + std::to_string(i));
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(longest_child);
            ::_exit(builds(feed, i % 2 == 0 ? "blocked" : "ranges", output) ? 0 : 1);
        }
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0) << "child " << i << (WIFSIGNALED(status) ? " hangs or crashes" : " fails");
        libsieve_image* image = nullptr;
        EXPECT_TRUE(libsieve_image_open(output.c_str(), &image, nullptr));
        libsieve_image_free(image);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
}

// An image that nobody changes may be asked on both sides.
TEST(Fork, AChildAsksItsParentsImage) {
    const sieve::test::Files files;
    const std::string feed = files.feed("feed", {"10.0.1.7"});
    libsieve_keys* keys = nullptr;
    libsieve_image* image = nullptr;
    ASSERT_TRUE(libsieve_keys_new(SIEVE_FIELD_SRC, &keys, nullptr));
    ASSERT_TRUE(libsieve_keys_add_feed(keys, feed.c_str(), nullptr));
    ASSERT_TRUE(libsieve_build(keys, nullptr, &image, nullptr));
    sieve_key key{};
    ASSERT_TRUE(libsieve_parse_key("10.0.1.7", SIEVE_FIELD_SRC, &key, nullptr));
    const pid_t child = ::fork();
    if (child == 0) ::_exit(libsieve_image_contains(image, &key) ? 0 : 1);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    libsieve_image_free(image);
    libsieve_keys_free(keys);
}

} // namespace
