// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/set_argument.hpp"

#include <filesystem>
#include <tuple>

#include <gtest/gtest.h>

#include "libsieve/control/spec/build_options.hpp"
#include "unit/messages.hpp"

namespace sieve::cli {
namespace {

SetArgument parsed(const std::string& text) {
    const auto set = parse_set_argument(text);
    EXPECT_TRUE(set) << set.error().message;
    return set.value_or(SetArgument{});
}

TEST(SetArgument, NameAndSourceAlone) {
    const control::SetSpec set = parsed("bad=/a/b=c.txt");
    EXPECT_EQ(set.name, "bad");
    EXPECT_EQ(set.sources, std::vector<std::string>{"/a/b=c.txt"});
    EXPECT_FALSE(set.action);
    EXPECT_FALSE(set.verify);
    EXPECT_TRUE(set.feed.chosen.empty());
    EXPECT_EQ(set.feed.fields, SIEVE_FIELD_SRC);
}

TEST(SetArgument, ActionsAndVerification) {
    EXPECT_EQ(parsed("a=f,action=pass").action->action, SIEVE_ACTION_PASS);
    EXPECT_EQ(parsed("a=f,redirect=cpu:3").action->target, "cpu:3");
    EXPECT_EQ(parsed("a=f,verify").verify->feed, "");
    EXPECT_EQ(parsed("a=f,verify=g").verify->feed, "g");
    EXPECT_TRUE(parsed("a=f,verify").feed.chosen.empty()) << "no option of a feed";
}

TEST(SetArgument, Limits) {
    for (const auto& [text, rate, burst] : {std::tuple{"a=f,limit=1000/2500", 1000U, 2500U},
                                            {"a=f,limit=7", 7U, 7U},
                                            {"a=f,action=limit=1e3/1", 1000U, 1U},
                                            {"a=f,limit=100000000/4294967295", 100'000'000U, 0xffffffffU}}) {
        const control::WantedAction action = *parsed(text).action;
        EXPECT_EQ(action.action, SIEVE_ACTION_LIMIT) << text;
        EXPECT_EQ(action.limit.rate, rate) << text;
        EXPECT_EQ(action.limit.burst, burst) << text;
    }
    EXPECT_EQ(control::describe_action({SIEVE_ACTION_LIMIT, 5, 9}), "limit=5/9");
    for (const char* wrong :
         {"0", "-1", "1.5", "x", "", "1/0", "1/", "/1", "100000001", "1/86401", "1/2/3", "1/4294967296"})
        EXPECT_FALSE(parse_set_argument(std::string("a=f,limit=") + wrong)) << wrong;
    EXPECT_FALSE(parse_set_argument("a=f,limit=5,action=drop"));
    EXPECT_FALSE(parse_set_argument("a=f,limit"));
}

TEST(SetArgument, HowServersAreAsked) {
    const SetArgument set = parsed(
        "a=https://h/l,certificates=/ca,client-certificate=/c,client-key=/k,header-file=/h,username=u,"
        "password-file=/p,proxy=http://p,proxy-username=q,proxy-password-file=/r,user-agent=Mozilla/5.0");
    EXPECT_EQ(set.access, (service::HttpAccess{.server = {"/ca", "/c", "/k"},
                                               .header_file = "/h",
                                               .username = "u",
                                               .password_file = "/p",
                                               .proxy = {"http://p", "q", "/r"},
                                               .user_agent = "Mozilla/5.0"}));
    EXPECT_TRUE(set.feed.chosen.empty()) << "no option of a feed";
    // A child reads the file, and starts at /.
    EXPECT_EQ(parsed("a=f,header-file=h").access.header_file, std::filesystem::absolute("h"));
    for (const char* wrong : {"username=u", "password-file=/p", "client-key=/k", "header-file",
                              "header-file=", "username=,password-file=/p", "user-agent=a\nb",
                              "proxy=", "proxy=proxy", "proxy=http://u:pw@p", "username=a:b,password-file=/p",
                              "proxy=http://p,proxy-username=a:b,proxy-password-file=/p",
                              "proxy=http://p,proxy-username=u", "proxy=http://p,proxy-password-file=/p",
                              "proxy-username=u,proxy-password-file=/p", "proxy-username"})
        EXPECT_FALSE(parse_set_argument(std::string("a=https://h/l,") + wrong)) << wrong;
}

TEST(SetArgument, NoMistakeShowsAPassword) {
    for (const char* text :
         {"a=https://h/l,proxy=http://u:s3cret@p", "a=https://h/l,proxy=http://u:s3cret@p,fpr=low",
          "https://u:s3cret@h/?a=b", "https://u:s3cret@h/"}) {
        const auto wrong = parse_set_argument(text);
        expect_error(wrong, ErrorKind::invalid_request);
        ASSERT_FALSE(wrong) << text;
        EXPECT_EQ(wrong.error().message.find("s3cret"), std::string::npos) << wrong.error().message;
    }
}

TEST(SetArgument, Conditions) {
    const auto said = [](const std::string& text) {
        return control::describe_condition(parsed(text).condition);
    };
    EXPECT_EQ(said("a=f"), "");
    EXPECT_EQ(said("a=f,dport=22"), "dport=22");
    EXPECT_EQ(said("a=f,dport=22,443,8000-8100,action=pass"), "dport=22,443,8000-8100");
    EXPECT_EQ(parsed("a=f,dport=22,443,action=pass").action->action, SIEVE_ACTION_PASS);
    EXPECT_EQ(said("a=f,proto=tcp,udp,47,dport=22,80,verify"), "dport=22,80,proto=tcp,udp,gre");
    EXPECT_TRUE(parsed("a=f,proto=tcp,udp,47,dport=22,80,verify").verify);
    EXPECT_EQ(said("a=f,sport=any"), "");
    EXPECT_EQ(parsed("a=22,dport=1,2").sources, std::vector<std::string>{"22"});
    // Fields of a key are no ports of a condition.
    EXPECT_EQ(parsed("a=f,key=src,dport,proto,dport=22").feed.fields,
              SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO);
    EXPECT_TRUE(parsed("a=f,dport=22").feed.chosen.empty()) << "no option of a feed";
    for (const char* wrong : {"dport", "dport=", "dport=ssh", "dport=22,ssh", "dport=22,dport=443",
                              "proto=tpc", "proto=tcp,any", "sport=70000", "22"})
        EXPECT_FALSE(parse_set_argument(std::string("a=f,") + wrong)) << wrong;
}

// Else a list of protocols would take it for one more.
TEST(SetArgument, NoOptionIsCalledLikeAProtocol) {
    const control::ConditionPart& proto = control::condition_parts()[SIEVE_PART_PROTO];
    for (const SetOption& option : set_options())
        EXPECT_FALSE(continues_list(proto, option.name)) << option.name;
    for (const control::BuildOption& option : control::build_options())
        EXPECT_FALSE(continues_list(proto, option.name)) << option.name;
}

TEST(SetArgument, ASourceEndsAtTheFirstCommaWhateverItLooksLike) {
    EXPECT_EQ(parsed("x=key=src,key=src,dst").sources, std::vector<std::string>{"key=src"});
    expect_error(parse_set_argument("x=key=src,dst"), ErrorKind::invalid_request);
}

TEST(SetArgument, EveryBuildOption) {
    const control::SetSpec set =
        parsed("bad=f,feed=g,kind=dleft64,key=src,dport,proto,fpr=1e-5,choices=3,alpha=0.5,hashes=9,"
               "effort=fast,rounds=2,seed=7,threads=1,max-probes=2,max-keys=1e6,skip-invalid,action=count");
    EXPECT_EQ(set.sources, (std::vector<std::string>{"f", "g"}));
    EXPECT_EQ(set.feed.fields, SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO);
    const BuildOptions& build = set.feed.build;
    EXPECT_EQ(build.kind.kind, SIEVE_KIND_DLEFT64);
    EXPECT_EQ(build.fpr, 1e-5);
    EXPECT_EQ(build.kind.choices, 3U);
    EXPECT_EQ(build.kind.alpha, 0.5);
    EXPECT_EQ(build.kind.hashes, 9U);
    EXPECT_EQ(build.kind.effort, Effort::fast);
    EXPECT_EQ(build.kind.rounds, 2U);
    EXPECT_EQ(build.seed, 7U);
    EXPECT_EQ(build.threads, 1U);
    EXPECT_EQ(build.prefixes.max_probes, 2U);
    EXPECT_EQ(build.prefixes.max_keys, 1'000'000U);
    EXPECT_TRUE(set.feed.skip_invalid);
    EXPECT_EQ(set.action->action, SIEVE_ACTION_COUNT);
    EXPECT_EQ(set.feed.chosen.size(), 13U);
    EXPECT_EQ(parsed("a=f,memory=1.5M").feed.build.memory, 1'572'864U);
    EXPECT_EQ(parsed("a=f,bits-per-key=20").feed.build.bits_per_key, 20.0);
}

TEST(SetArgument, WhatMakesNoSenseIsNamed) {
    for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
             {"bad", "expected NAME=IMAGE"},
             {"a set=f", "a set's name"},
             {"bad=", "without an image or feed"},
             {"bad=,fpr=1", "without an image or feed"},
             {"bad=f,speed=2", "unknown option `speed=2`"},
             {"bad=f,", "unknown option ``"},
             {"bad=f,action=eat", "expected drop, pass, count or limit=PPS[/BURST]"},
             {"bad=f,action=pass,redirect=eth1", "one action"},
             {"bad=f,verify=", "verify= without a feed"},
             {"bad=f,feed=", "feed= without a file"},
             {"bad=f,fpr", "expected fpr=RATE"},
             {"bad=f,fpr=low", "fpr=low: expected a number"},
             {"bad=f,rounds=1.5", "rounds=1.5: expected a whole number"},
             {"bad=f,rounds=5e9", "rounds=5e9: expected a whole number"},
             {"bad=f,threads=1e9", "threads=1e9: expected a number of threads from 1 to 1024"},
             {"bad=f,skip-invalid=1", "takes no value"},
             {"bad=f,key=source", "key=source: "},
             {"bad=f,kind=round", "kind=round: "},
             {"bad=f,dst", "unknown option `dst`"},
             {"bad=f,dport", "expected dport=PORTS"}}) {
        expect_error(parse_set_argument(text), ErrorKind::invalid_request);
    }
}

} // namespace
} // namespace sieve::cli
