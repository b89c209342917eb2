// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/child_messages.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/messages.hpp"

namespace sieve::service {
namespace {

TEST(ChildMessages, AnOrderComesAsItWasSent) {
    const Confinement confinement{ChildRole::build, {1, 2}, 3, 4, std::chrono::seconds(5), 6, 7, 8};
    const auto sent = [&](const AnyOrder& order) { return write_order({confinement, order}); };
    ReadOrder order;
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
    order.feed.build.label = "a b";
    order.lists = {"a \"b\"", "\xff\n"};
    order.known_digest = "abc";
    order.limits = {123, 4.5};
    const auto read = read_order(sent(order));
    ASSERT_TRUE(read) << read.error().message;
    const ReadOrder& back = std::get<ReadOrder>(read->order);
    EXPECT_EQ(back.lists.size(), 2U);
    EXPECT_EQ(back.lists[0], "a \"b\"");
    // Writing it again gives the same bytes: every field is in it.
    ReadOrder same = back;
    same.lists = order.lists;
    EXPECT_EQ(sent(same), sent(order));
    EXPECT_EQ(back.feed.build.seed, ~0ULL);
    EXPECT_EQ(back.feed.build.kind.rounds, 9U);
    EXPECT_EQ(back.limits.ratio, 4.5);

    ListOrder list;
    list.fields = SIEVE_FIELD_DST;
    list.options = {.format = {ListSyntax::csv, {"ip"}},
                    .skip_invalid = true,
                    .ranges = true,
                    .key_ranges = true,
                    .mask_host_bits = true,
                    .keep_skipped = true,
                    .threads = 3,
                    .block_bytes = 5};
    list.sought = {{1, 2, 3, 4, ~0ULL}};
    list.inputs = {{0xff, 'a'}, {}};
    const auto listed = read_order(sent(list));
    ASSERT_TRUE(listed);
    EXPECT_EQ(write_order(*listed), sent(list));
    EXPECT_EQ(std::get<ListOrder>(listed->order).inputs, list.inputs);
    EXPECT_TRUE(std::get<ListOrder>(listed->order).options.format == list.options.format);

    const BuildOrder build{order.feed, true};
    const auto built = read_order(sent(build));
    ASSERT_TRUE(built);
    EXPECT_EQ(write_order(*built), sent(build));
    EXPECT_TRUE(std::get<BuildOrder>(built->order).verified);

    FetchOrder fetch;
    fetch.request = {
        "https://h/a",
        {{"/ca", "/cert", "/key"}, "/headers", "user", "/pw", {"http://proxy", "pu", "/ppw"}, "agent"},
        "\"tag\"",
        "today",
        R"({"a": 1})",
        {}};
    fetch.key_file = "/api";
    fetch.decisions = DecisionOrder{{}, 5};
    fetch.request.limits.redirects = 3;
    const auto fetched = read_order(sent(fetch));
    ASSERT_TRUE(fetched);
    EXPECT_EQ(write_order(*fetched), sent(fetch));
    EXPECT_EQ(std::get<FetchOrder>(fetched->order).request.etag, "\"tag\"");
    EXPECT_EQ(std::get<FetchOrder>(fetched->order).request.access, fetch.request.access);
    EXPECT_EQ(std::get<FetchOrder>(fetched->order).request.post, R"({"a": 1})");
    EXPECT_EQ(std::get<FetchOrder>(fetched->order).key_file, "/api");

    JoinOrder join;
    join.task.sets.push_back({.name = "a", .fields = 3, .rate = 1.25e-7, .keys = 5, .key_sum = {~0ULL, 6}});
    join.task.sets[0].hash_key[1] = ~0ULL - 1;
    join.task.sets.push_back({.name = "b"});
    const auto joined = read_order(sent(join));
    ASSERT_TRUE(joined);
    EXPECT_EQ(write_order(*joined), sent(join));
    const control::JointSet& first = std::get<JoinOrder>(joined->order).task.sets[0];
    EXPECT_EQ(first.rate, 1.25e-7);
    EXPECT_EQ(first.hash_key[1], ~0ULL - 1);
    EXPECT_EQ(first.key_sum[0], ~0ULL);

    const auto command = read_order(sent(CommandOrder{{"a", "b c"}}));
    ASSERT_TRUE(command);
    EXPECT_EQ(std::get<CommandOrder>(command->order).arguments, (std::vector<std::string>{"a", "b c"}));

    for (const char* text : {"", "{}", "[]", "{\"confinement\":{\"role\":2}}", "{\"read\":{}}"})
        EXPECT_FALSE(read_order(text)) << text;
}

TEST(ChildMessages, AReportComesAsItWasSent) {
    const auto answer = read_report<HttpAnswer>(write_report(HttpAnswer{true, "\"e\"", "yesterday", 12}));
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->unchanged);
    EXPECT_EQ(answer->etag, "\"e\"");
    EXPECT_EQ(answer->last_modified, "yesterday");
    EXPECT_EQ(answer->bytes, 12U);
    const auto done = read_report<ReadDone>(write_report(ReadDone{true, "00ff", {"one", "two"}}));
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->known);
    EXPECT_EQ(done->digest, "00ff");
    EXPECT_EQ(done->remarks.size(), 2U);
    const auto failed = read_report<HttpAnswer>(
        write_failure(GatherFailure{{ErrorKind::out_of_memory, "too large"}, std::chrono::seconds(9)}));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().error.kind, ErrorKind::out_of_memory);
    EXPECT_EQ(failed.error().error.message, "too large");
    EXPECT_EQ(failed.error().retry_after, std::chrono::seconds(9));
    EXPECT_FALSE(failed.error().error.facts.input);
    const auto blamed = read_report<ReadDone>(
        write_failure(Error{.kind = ErrorKind::bad_input, .message = "no list", .facts = {.input = 3}}));
    ASSERT_FALSE(blamed);
    EXPECT_EQ(blamed.error().error.facts.input, 3U);
}

TEST(ChildMessages, WhatAHostileChildReportsIsNonsenseAtWorst) {
    for (const std::string line :
         {"", "{", "null", "{}", "[1]", "{\"read\":1}", "{\"read\":{\"known\":\"x\"}}", "{\"failed\":{}}",
          "{\"fetched\":{\"unchanged\":true}}", "{\"failed\":{\"kind\":1,\"message\":2}}",
          R"({"failed":{"kind":"bad_input","message":"","input":"0"}})"}) {
        const auto read = read_report<ReadDone>(line);
        ASSERT_FALSE(read) << line;
        expect_says(read.error().error);
        EXPECT_FALSE(read_report<HttpAnswer>(line)) << line;
    }
    EXPECT_FALSE(read_report<ReadDone>(std::string(60000, '[')));
    // The parent believes no statement about the kernel, and no control character for a terminal gets
    // through.
    const auto failed = read_report<ReadDone>(
        R"({"failed":{"kind":"kernel_refused","message":"\u001b[31m\n","retry_after":5}})");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().error.kind, ErrorKind::bad_input);
    EXPECT_EQ(failed.error().error.message, "\\x1b[31m\\x0a");
    nlohmann::json many = {
        {"read", {{"known", false}, {"digest", ""}, {"remarks", nlohmann::json::array()}}}};
    for (int i = 0; i < 1000; i++) many["read"]["remarks"].push_back("x");
    EXPECT_LE(read_report<ReadDone>(many.dump())->remarks.size(), 20U);
}

} // namespace
} // namespace sieve::service
