// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/arguments.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "front-end/console/program.hpp"
#include "unit/messages.hpp"

namespace sieve::cli {
namespace {

struct Texts {
    std::string interface {};
    std::string hook{};
    std::optional<std::string> file{};
    std::string reason{};
    std::vector<std::string> keys{};
};

std::optional<Exit> parse(std::vector<std::string> words, Texts& texts) {
    Program program("tool", "");
    Arguments all = program.arguments();
    all.add("IFACE", texts.interface, "");
    all.add("KEY", texts.keys, "");
    all.add("--hook", texts.hook, "");
    all.add("--file", texts.file, "");
    all.add("--reason", texts.reason, "").may_be_empty();
    words.insert(words.begin(), "tool");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return program.parse(static_cast<int>(argv.size()), argv.data());
}

// What a script passes whose variable is not set is not left out.
TEST(Arguments, AnEmptyTextIsRefusedWhereNoneIsMeant) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{""}, {"eth0", "--hook", ""}, {"--file", "", "eth0"}}) {
        Texts texts;
        testing::internal::CaptureStderr();
        EXPECT_EQ(parse(words, texts), Exit::usage);
        expect_says(testing::internal::GetCapturedStderr());
    }
    Texts texts;
    EXPECT_EQ(parse({}, texts), std::nullopt) << "left out";
    EXPECT_EQ(parse({"eth0", "", "--reason", ""}, texts), std::nullopt) << "who reads keys refuses them";
    EXPECT_EQ(texts.interface, "eth0");
    EXPECT_EQ(texts.keys, std::vector<std::string>{""});
    EXPECT_EQ(texts.reason, "");
}

} // namespace
} // namespace sieve::cli
