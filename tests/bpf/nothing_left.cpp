// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// No test may leave pins. Pins keep programs and maps alive after all processes and network namespaces have
// gone.
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace sieve::test {
namespace {

std::set<std::string> pins() {
    namespace fs = std::filesystem;
    std::set<std::string> found;
    std::error_code error;
    for (fs::recursive_directory_iterator at("/sys/fs/bpf", error), end; !error && at != end;
         at.increment(error))
        if (!at->is_directory(error)) found.insert(at->path());
    return found;
}

class NothingLeft : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo& /*test*/) override { before_ = pins(); }

    void OnTestEnd(const testing::TestInfo& /*test*/) override {
        const std::set<std::string> after = pins();
        std::set<std::string> left;
        std::set_difference(after.begin(), after.end(), before_.begin(), before_.end(),
                            std::inserter(left, left.end()));
        for (const std::string& pin : left) ADD_FAILURE() << "the test left " << pin << " behind";
    }

    std::set<std::string> before_;
};

// A global environment is set up after InitGoogleTest, which gtest_main calls.
class Watch : public testing::Environment {
    void SetUp() override {
        // Otherwise the first tool that pins something mounts it, and its files look like pins.
        struct statfs pins = {};
        ASSERT_EQ(::statfs("/sys/fs/bpf", &pins), 0);
        if (pins.f_type != BPF_FS_MAGIC) {
            ASSERT_EQ(::mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=700"), 0) << "tests of pins need root";
        }
        testing::UnitTest::GetInstance()->listeners().Append(new NothingLeft); // GoogleTest now owns it
    }
};

[[maybe_unused]] testing::Environment* const watch = testing::AddGlobalTestEnvironment(new Watch);

} // namespace
} // namespace sieve::test
