// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// No test may leave pins. Pins keep programs and maps alive after all processes and network namespaces have
// gone.
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
        testing::UnitTest::GetInstance()->listeners().Append(new NothingLeft); // GoogleTest now owns it
    }
};

[[maybe_unused]] testing::Environment* const watch = testing::AddGlobalTestEnvironment(new Watch);

} // namespace
} // namespace sieve::test
