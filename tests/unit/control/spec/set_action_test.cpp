// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/set_action.hpp"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "unit/messages.hpp"

namespace sieve::control {
namespace {

std::string file(const char* path) {
    std::ifstream stream(path);
    EXPECT_TRUE(stream) << path;
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
}

std::set<std::string> matches(const std::string& text, const char* expression) {
    std::set<std::string> found;
    const std::regex pattern(expression);
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
        found.insert((*at)[1]);
    return found;
}

/// The packet path's header numbers them.
TEST(SetAction, EachOfThePacketPathIsKnown) {
    std::string header = file("include/sieve/policy.h");
    header = header.substr(header.find("enum sieve_action {"));
    const std::set<std::string> numbers =
        matches(header.substr(0, header.find("};")), "SIEVE_ACTION_[A-Z_]+ = ([0-9]+)");
    std::set<std::string> known;
    for (const ActionFacts& facts : set_actions()) {
        known.insert(std::to_string(facts.number));
        EXPECT_STREQ(action_name(facts.number), facts.name);
    }
    EXPECT_EQ(known, numbers);
    EXPECT_STREQ(action_name(static_cast<sieve_action>(7)), "unknown");
}

TEST(SetAction, TheManualPageHasThoseThatHaveAName) {
    std::set<std::string> names;
    for (const ActionFacts& facts : set_actions())
        if (facts.by_name) {
            names.insert(facts.name);
            EXPECT_EQ(parse_action(facts.name).value().action, facts.number);
        }
    EXPECT_EQ(matches(file("docs/xdp-sieve.8"), "\n\\.It Cm action=([a-z]+)\n"), names);
    EXPECT_EQ(action_names(), "drop|pass|count");
    expect_error(parse_action("redirect"), ErrorKind::invalid_request);
}

/// What guards and explanations rely on.
TEST(SetAction, SaysWhatAMatchMayDo) {
    const auto of = [](sieve_action action) {
        const ActionFacts& facts = facts_of(action);
        return std::string(facts.decides ? "decides " : "") + (facts.may_drop ? "drops " : "") +
               (facts.takes ? "takes " : "") + (facts.lets_in ? "lets in" : "");
    };
    EXPECT_EQ(of(SIEVE_ACTION_DROP), "decides drops takes ");
    EXPECT_EQ(of(SIEVE_ACTION_PASS), "decides lets in");
    EXPECT_EQ(of(SIEVE_ACTION_COUNT), "");
    EXPECT_EQ(of(SIEVE_ACTION_LIMIT), "decides drops takes ");
    EXPECT_EQ(of(SIEVE_ACTION_REDIRECT_DEVICE), "decides takes lets in");
    EXPECT_EQ(of(SIEVE_ACTION_REDIRECT_CPU), "decides takes lets in");
}

} // namespace
} // namespace sieve::control
