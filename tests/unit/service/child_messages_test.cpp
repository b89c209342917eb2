// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/child_messages.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libsieve/service/source_provenance.hpp"

namespace sieve::service {
namespace {

TEST(ChildMessages, AnOrderComesAsItWasSent) {
    BuildOrder order;
    order.confinement = {ChildRole::build, {1, 2}, 3, 4, std::chrono::seconds(5), 6, 7, 8};
    order.feed.fields = SIEVE_FIELD_DST;
    order.feed.skip_invalid = true;
    order.feed.chosen = {"kind"};
    order.feed.build.kind = {SIEVE_KIND_BLOOM, 3, 0.5, 7, Effort::best, 9};
    order.feed.build.bits_per_key = 12.25;
    order.feed.build.fpr = 1e-9;
    order.feed.build.memory = 1ULL << 40;
    order.feed.build.seed = ~0ULL;
    order.feed.build.prefixes = {2, 99};
    order.feed.build.trials = 77;
    order.feed.build.threads = 5;
    order.lists = {"a \"b\"", "\xff\n"};
    order.exact = order.list = true;
    order.known_digest = "abc";
    order.limits = {123, 4.5};
    const auto read = read_order(write_order(order));
    ASSERT_TRUE(read) << read.error().message;
    const BuildOrder& back = std::get<BuildOrder>(*read);
    EXPECT_EQ(back.lists.size(), 2U);
    EXPECT_EQ(back.lists[0], "a \"b\"");
    // Writing it again gives the same bytes: every field is in it.
    BuildOrder same = back;
    same.lists = order.lists;
    EXPECT_EQ(write_order(same), write_order(order));
    EXPECT_EQ(back.feed.build.seed, ~0ULL);
    EXPECT_EQ(back.feed.build.kind.rounds, 9U);
    EXPECT_EQ(back.limits.ratio, 4.5);

    FetchOrder fetch{{ChildRole::fetch}, {}, "/ca.pem"};
    fetch.request = {"https://h/a", "PEM", "http://proxy", "\"tag\"", "today", {}};
    fetch.request.limits.redirects = 3;
    const auto fetched = read_order(write_order(fetch));
    ASSERT_TRUE(fetched);
    EXPECT_EQ(write_order(*fetched), write_order(fetch));
    EXPECT_EQ(std::get<FetchOrder>(*fetched).request.etag, "\"tag\"");

    const auto command = read_order(write_order(CommandOrder{{ChildRole::command}, {"a", "b c"}}));
    ASSERT_TRUE(command);
    EXPECT_EQ(std::get<CommandOrder>(*command).arguments, (std::vector<std::string>{"a", "b c"}));

    for (const char* text : {"", "{}", "[]", "{\"confinement\":{\"role\":2}}"})
        EXPECT_FALSE(read_order(text)) << text;
}

TEST(ChildMessages, AReportComesAsItWasSent) {
    const auto answer = read_http_report(write_report(HttpAnswer{true, "\"e\"", "yesterday", 12}));
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->unchanged);
    EXPECT_EQ(answer->etag, "\"e\"");
    EXPECT_EQ(answer->last_modified, "yesterday");
    EXPECT_EQ(answer->bytes, 12U);
    const auto done = read_build_report(write_report(BuildDone{true, "00ff", {"one", "two"}}));
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->known);
    EXPECT_EQ(done->digest, "00ff");
    EXPECT_EQ(done->remarks.size(), 2U);
    const auto failed = read_http_report(
        write_report(ChildFailure{{ErrorKind::out_of_memory, "too large"}, std::chrono::seconds(9)}));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().error.kind, ErrorKind::out_of_memory);
    EXPECT_EQ(failed.error().error.message, "too large");
    EXPECT_EQ(failed.error().retry_after, std::chrono::seconds(9));
}

TEST(ChildMessages, WhatAHostileChildReportsIsNonsenseAtWorst) {
    for (const std::string line :
         {"", "{", "null", "{}", "[1]", "{\"built\":1}", "{\"built\":{\"known\":\"x\"}}", "{\"failed\":{}}",
          "{\"fetched\":{\"unchanged\":true}}", "{\"failed\":{\"kind\":1,\"message\":2}}"}) {
        ASSERT_FALSE(read_build_report(line)) << line;
        EXPECT_EQ(read_build_report(line).error().error.message, "reported nonsense") << line;
        EXPECT_FALSE(read_http_report(line)) << line;
    }
    EXPECT_FALSE(read_build_report(std::string(60000, '[')));
    // The parent believes no statement about the kernel, and no control character for a terminal gets
    // through.
    const auto failed =
        read_build_report(R"({"failed":{"kind":"kernel_refused","message":"\u001b[31m\n","retry_after":5}})");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().error.kind, ErrorKind::bad_input);
    EXPECT_EQ(failed.error().error.message, "\\x1b[31m\\x0a");
    nlohmann::json many = {
        {"built", {{"known", false}, {"digest", ""}, {"remarks", nlohmann::json::array()}}}};
    for (int i = 0; i < 1000; i++) many["built"]["remarks"].push_back("x");
    EXPECT_LE(read_build_report(many.dump())->remarks.size(), 20U);
}

TEST(SourceProvenance, SurvivesTheStateDirectory) {
    const SourceProvenance provenance{"https://h/a", "00ff", 12, "\"e\"", "today", 1700000000, 1600000000};
    const nlohmann::json json = provenance;
    EXPECT_EQ(nlohmann::json::parse(json.dump()).get<SourceProvenance>(), provenance);
    // From another version, or damaged.
    const auto partly =
        nlohmann::json::parse(R"({"source":"a","bytes":"many","etag":5})").get<SourceProvenance>();
    EXPECT_EQ(partly.source, "a");
    EXPECT_EQ(partly.bytes, 0U);
    EXPECT_EQ(partly.etag, "");
    EXPECT_EQ(nlohmann::json(5).get<SourceProvenance>(), SourceProvenance{});
}

} // namespace
} // namespace sieve::service
