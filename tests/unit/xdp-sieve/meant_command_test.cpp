// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/meant_command.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "unit/messages.hpp"
#include "xdp-sieve/unknown_command.hpp"

namespace sieve::cli {
namespace {

using Words = std::vector<std::string>;

const Words known{"add",   "apply",  "default", "delete", "explain", "insert", "list",   "load",  "pause",
                  "query", "remove", "resume",  "set",    "status",  "swap",   "unload", "stats", "top"};

bool is_interface(const std::string& name) {
    return name == "eth0" || name == "lo";
}

Words split(const std::string& line) {
    std::istringstream words(line);
    return {std::istream_iterator<std::string>(words), {}};
}

std::string meant(const std::string& line) {
    return meant_by(split(line), known, is_interface);
}

// For a command of ours without options.
std::string instead(const std::string& line) {
    const Words words = split(line);
    return meant_instead(words.front(), {words.begin() + 1, words.end()}, words, is_interface);
}

TEST(MeantCommand, TheWordsOfOthers) {
    for (const auto& [typed, command] :
         {std::pair{"del eth0 bad 192.0.2.1", "`xdp-sieve delete eth0 bad 192.0.2.1`"},
          {"del bad 192.0.2.1", "`xdp-sieve delete IFACE bad 192.0.2.1`"},
          {"block 192.0.2.1", "`xdp-sieve insert IFACE NAME 192.0.2.1`"},
          {"block eth0 192.0.2.0/24", "`xdp-sieve insert eth0 NAME 192.0.2.0/24`"},
          {"-q block 2001:db8::1 eth0 bad", "`xdp-sieve insert eth0 bad 2001:db8::1`"},
          {"test eth0 bad 192.0.2.1", "`xdp-sieve explain eth0 192.0.2.1`"},
          {"test", "`xdp-sieve explain IFACE KEY`"},
          {"flush eth0 bad", "`xdp-sieve delete eth0 bad KEY`"},
          {"save eth0 bad", "`xdp-sieve list eth0 bad`"},
          {"save", "`xdp-sieve list IFACE NAME`"},
          {"show eth0", "`xdp-sieve status eth0`"},
          {"reload", "`systemctl reload xdp-sieved`"},
          {"reload", "`xdp-sieve apply`"},
          {"start", "`systemctl enable --now xdp-sieved`"},
          {"create eth0 bad", "`xdp-sieve load eth0 bad=FEED`"},
          {"help", "`xdp-sieve --help`"},
          {"help load", "`xdp-sieve load --help`"},
          {"-V", "`xdp-sieve --version`"},
          {"version", "`xdp-sieve --version`"},
          {"fleet status", "xdp-sieve-fleet"},
          {"bench --quick", "`sieve-bench`"}})
        EXPECT_NE(meant(typed).find(command), std::string::npos) << typed << ": " << meant(typed);
    EXPECT_EQ(meant("frobnicate eth0"), "");
    EXPECT_EQ(meant("load eth0 bad=x"), "");
    EXPECT_EQ(meant("--json"), "");
}

TEST(MeantCommand, TheCommandComesFirst) {
    expect_says(meant("eth0 load bad=list.txt"));
    expect_says(meant("bad=a load eth0 --default drop"));
    EXPECT_NE(meant("eth0").find("`xdp-sieve status eth0`"), std::string::npos);
}

TEST(MeantCommand, ArgumentsInTheWrongOrder) {
    EXPECT_NE(instead("add eth0 bad 192.0.2.1").find("`xdp-sieve insert eth0 bad 192.0.2.1`"),
              std::string::npos);
    EXPECT_NE(instead("add bad eth0 192.0.2.1").find("`xdp-sieve insert eth0 bad 192.0.2.1`"),
              std::string::npos);
    EXPECT_NE(instead("add eth0 bad").find("`xdp-sieve add eth0 bad=FEED`"), std::string::npos);
    EXPECT_NE(instead("insert bad eth0 192.0.2.1").find("`xdp-sieve insert eth0 bad 192.0.2.1`"),
              std::string::npos);
    EXPECT_NE(instead("delete 192.0.2.1 eth0 bad").find("`xdp-sieve delete eth0 bad 192.0.2.1`"),
              std::string::npos);
    EXPECT_NE(instead("insert eth0 192.0.2.1 bad").find("`xdp-sieve insert eth0 bad 192.0.2.1`"),
              std::string::npos);
    expect_says(instead("load bad=a.txt eth0"));
    expect_says(instead("explain 192.0.2.1 eth0"));
    expect_says(instead("query 192.0.2.1 eth0"));
    EXPECT_NE(instead("list").find("`xdp-sieve status`"), std::string::npos);
    EXPECT_NE(instead("list eth0").find("`xdp-sieve list eth0 NAME`"), std::string::npos);
    for (const char* right : {"insert eth0 bad 192.0.2.1", "delete eth0 bad 192.0.2.1",
                              "load eth0 bad=missing.txt", "add eth0 bad=missing.txt first", "unload eth9",
                              "load eth9 bad=a", "swap eth0 x=y", "query list.sieve eth0"})
        EXPECT_EQ(instead(right), "") << right;
}

// An option's value stays behind its option.
TEST(MeantCommand, OptionsKeepTheirValues) {
    const Words words = split("load --default drop bad=a eth0 --priority 7");
    expect_says(meant_instead("load", {"bad=a", "eth0"}, words, is_interface));
    EXPECT_EQ(meant_instead("load", {"bad=a", "lo"}, split("load bad=a --way lo"), is_interface), "");
}

TEST(MeantCommand, OddArgumentsStayOneWord) {
    EXPECT_NE(meant_instead("load", {"a=b c", "eth0"}, {"load", "a=b c", "eth0"}, is_interface)
                  .find("`xdp-sieve load eth0 'a=b c'`"),
              std::string::npos);
}

TEST(MeantCommand, AnEmptyArgumentStandsForNothing) {
    for (const Words& words :
         {Words{"insert", "", "bad", "192.0.2.1"}, {"list", ""}, {"load", "", "a=b", "eth0"}})
        EXPECT_EQ(meant_instead(words[0], {words.begin() + 1, words.end()}, words, is_interface), "");
}

TEST(UnknownCommand, NeverLeadsToLessProtection) {
    for (const std::string word :
         {"reload", "unlaod", "unloaf", "remov", "removed", "deletes", "paus", "pauses"}) {
        std::string text = meant(word).empty() ? unknown_command(word, known) : meant(word);
        text.erase(text.find(word), word.size()); // it is quoted
        for (const char* harmful : {"unload", "remove", "delete", "pause"})
            EXPECT_EQ(text.find(harmful), std::string::npos) << word << ": " << text;
    }
    expect_says(unknown_command("laod", known));
}

} // namespace
} // namespace sieve::cli
