// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/explain.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

// Three sets: one that counts, one of two fields, one that drops.
struct Fixture {
    Fixture() {
        add("counted", SIEVE_ACTION_COUNT, "src");
        add("pairs", SIEVE_ACTION_PASS, "src,dport");
        add("bad", SIEVE_ACTION_DROP, "src");
    }
    void add(const std::string& name, sieve_action action, const std::string& fields) {
        FeedSpec spec;
        spec.fields = parse_fields(fields).value();
        const std::uint32_t id = kernel.put(name, action).map_id;
        const std::string line = fields == "src" ? "192.0.2.1" : "192.0.2.1 443";
        kernel.put_filter(id, Image::load(files.image(name, {line}, spec)).value());
    }
    Explanation ask(const std::string& text, const std::string& fields) {
        const auto hook = find_ours(kernel, {.interface = "eth0"});
        const std::uint32_t set = parse_fields(fields).value();
        auto done = explain(kernel, hook.value(), parse_key(text, set).value(), set);
        EXPECT_TRUE(done) << done.error().message;
        return std::move(*done);
    }
    test::Files files;
    test::FakeKernel kernel;
};

TEST(Explain, TheFirstMatchThatDoesNotCountDecides) {
    Fixture f;
    f.kernel.replay_hits = 0b111;
    const Explanation all = f.ask("192.0.2.1 443", "src,dport");
    EXPECT_EQ(all.decided_by, 1U);
    EXPECT_TRUE(all.sets[0].matched);
    EXPECT_TRUE(all.open.empty());
    EXPECT_FALSE(f.kernel.changed());
    std::vector<std::uint32_t> filters;
    for (const SetAnswer& answer : all.sets) filters.push_back(answer.status.set.map_id);
    EXPECT_EQ(f.kernel.maps_opened, filters) << "the very filters in force are asked";
}

TEST(Explain, ASetWhoseFieldsAreMissingStaysOpen) {
    Fixture f;
    f.kernel.replay_hits = 0b10; // of the two sets that are asked, the second
    const Explanation some = f.ask("192.0.2.1", "src");
    EXPECT_EQ(some.sets[1].lacking, SIEVE_FIELD_DPORT);
    EXPECT_FALSE(some.sets[1].matched);
    EXPECT_EQ(some.decided_by, 2U);
    EXPECT_EQ(some.open, std::vector<std::size_t>{1});
}

// The key says whether packets meet a condition, as far as it goes.
TEST(Explain, AConditionDecidesWithTheKey) {
    Fixture f;
    f.kernel.replay_hits = 0b111;
    kernel::SetInForce& pairs = f.kernel.running.table.sets[1];
    ASSERT_TRUE(set_condition(pairs.condition, condition_parts()[SIEVE_PART_SPORT], "1024-65535"));
    const Explanation depends = f.ask("192.0.2.1 443", "src,dport");
    EXPECT_EQ(depends.sets[1].met, Met::depends);
    EXPECT_TRUE(depends.sets[1].matched) << "the set holds the key";
    EXPECT_EQ(depends.open, std::vector<std::size_t>{1});
    EXPECT_EQ(depends.decided_by, 2U);
    const Explanation met = f.ask("192.0.2.1 1024 443", "src,sport,dport");
    EXPECT_EQ(met.sets[1].met, Met::yes);
    EXPECT_EQ(met.decided_by, 1U);
    const Explanation unmet = f.ask("192.0.2.1 1023 443", "src,sport,dport");
    EXPECT_EQ(unmet.sets[1].met, Met::no);
    EXPECT_TRUE(unmet.open.empty());
    EXPECT_EQ(unmet.decided_by, 2U);
}

TEST(Explain, WithoutAMatchTheDefaultDecides) {
    Fixture f;
    f.kernel.running.table.default_action = SIEVE_ACTION_DROP;
    const Explanation none = f.ask("192.0.2.9", "src");
    EXPECT_FALSE(none.decided_by);
    EXPECT_FALSE(none.matched());
    EXPECT_EQ(none.default_action, SIEVE_ACTION_DROP);
    f.kernel.replay_hits = 0b1; // the set that only counts
    const Explanation counted = f.ask("192.0.2.9", "src");
    EXPECT_FALSE(counted.decided_by);
    EXPECT_TRUE(counted.matched());
}

TEST(Explain, TheSetsSayWhatAKeyIs) {
    Fixture f;
    const auto table = read_table_status(f.kernel, find_ours(f.kernel, {.interface = "eth0"}).value());
    ASSERT_TRUE(table);
    EXPECT_EQ(fields_of_text(*table, "192.0.2.1").value(), SIEVE_FIELD_SRC);
    EXPECT_EQ(fields_of_text(*table, "192.0.2.1 443").value(), SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT);
    expect_error(fields_of_text(*table, "x"), ErrorKind::bad_input);
}

} // namespace
} // namespace sieve::control
