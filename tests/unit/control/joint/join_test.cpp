// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/joint/join.hpp"

#include <gtest/gtest.h>

#include "libsieve/control/table/apply.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class Join : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    std::vector<std::string> remarks;

    Observer observer() {
        Observer observer;
        observer.remark = [this](const std::string& text) { remarks.push_back(text); };
        return observer;
    }
    [[nodiscard]] bool remarked(const std::string& text) const {
        return std::any_of(remarks.begin(), remarks.end(),
                           [&](const std::string& remark) { return remark.find(text) != std::string::npos; });
    }
    TableSpec table(std::vector<SetSpec> sets) const {
        TableSpec spec;
        spec.interface = "eth0";
        spec.sets = std::move(sets);
        spec.join = true;
        return spec;
    }
    SetSpec set(const std::string& name, const std::string& address) {
        return Files::set(name, files.feed(name, {address}));
    }
    [[nodiscard]] std::optional<std::uint32_t> number(const std::string& name) const {
        const kernel::SetInForce* const found = kernel.running.table.find(name);
        return found != nullptr ? found->joined : std::nullopt;
    }
};

TEST_F(Join, SetsFromFeedsShareOneLookup) {
    const auto applied = apply(
        kernel, table({set("a", "192.0.2.1"), set("b", "192.0.2.2"), set("c", "192.0.2.3")}), observer());
    ASSERT_TRUE(applied) << applied.error().message;
    ASSERT_TRUE(applied->joined);
    EXPECT_EQ(applied->joined->sets, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(applied->joined->filter.keys(), 3U);
    EXPECT_LE(applied->joined->filter.expected_rate(), 1e-9);
    EXPECT_EQ(kernel.count("bring in joint of a b c"), 1U);
    EXPECT_EQ(kernel.running.table.joint_id, applied->joined->maps.filter_id);
    EXPECT_EQ(number("a"), 0U);
    EXPECT_EQ(number("c"), 2U);
    EXPECT_TRUE(remarks.empty() || !remarked("not joined"));
    for (const ReadySet& ready : applied->sets) EXPECT_FALSE(ready.keys) << "keys take memory";
}

TEST_F(Join, NothingIsJoinedUnlessAsked) {
    TableSpec spec = table({set("a", "192.0.2.1"), set("b", "192.0.2.2")});
    spec.join = false;
    const auto applied = apply(kernel, spec, observer());
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_FALSE(applied->joined);
    EXPECT_EQ(kernel.running.table.joint_id, 0U);
}

TEST_F(Join, OthersAreLeftOutAndNamed) {
    SetSpec live = set("live", "192.0.2.4");
    live.feed.build.kind.kind = SIEVE_KIND_DDLCBF;
    SetSpec verified = set("verified", "192.0.2.5");
    verified.verify = Verification{};
    verified.feed.build.kind.kind = SIEVE_KIND_XORSAT; // an exact set has nothing to verify
    SetSpec destination = set("destination", "192.0.2.6");
    destination.feed.fields = SIEVE_FIELD_DST;
    SetSpec prefixes = set("prefixes", "198.51.100.0/24");
    prefixes.feed.build.kind.kind = SIEVE_KIND_BLOCKED;
    SetSpec ranges = set("ranges", "198.51.100.0/25");
    SetSpec marks = set("marks", "192.0.2.7");
    marks.feed.build.spare.hits = true;
    const auto applied = apply(kernel,
                               table({live, set("a", "192.0.2.1"), verified, destination, prefixes,
                                      set("b", "192.0.2.2"), ranges, marks}),
                               observer());
    ASSERT_TRUE(applied) << applied.error().message;
    ASSERT_TRUE(applied->joined);
    EXPECT_EQ(applied->joined->sets, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(remarked("set live is not joined: keys come to and go from"));
    EXPECT_TRUE(remarked("set verified is not joined: its matches are verified"));
    EXPECT_TRUE(remarked("set destination is not joined: more sets have other fields"));
    EXPECT_TRUE(remarked("set prefixes is not joined: it has prefixes"));
    EXPECT_TRUE(remarked("set ranges is not joined: kind ranges holds ranges"));
    EXPECT_TRUE(remarked("set marks is not joined: it marks its hits"));
    EXPECT_EQ(number("live"), std::nullopt);
    EXPECT_EQ(number("b"), 1U);
}

// A prefix of 256 addresses at 8 bits per key: without the builder's help, a filter names the set for one of
// them in three of four loads.
TEST_F(Join, NoSetIsNamedForItsExceptions) {
    files.feed("exceptions", {"198.51.100.0/24", "192.0.2.9"});
    // Both sets have a rate of about 0.5%: the joint filter takes the lower of the sets' rates.
    const auto set_of = [&](const std::string& name, const std::string& network) {
        std::vector<std::string> entries;
        for (int i = 0; i < 250; i++) entries.push_back(network + std::to_string(i));
        SetSpec set = Files::set(name, files.feed(name, entries));
        set.feed.build.bits_per_key = 8;
        return set;
    };
    SetSpec a = set_of("a", "10.1.2.");
    a.feed.except = files.path("exceptions");
    const SetSpec b = set_of("b", "10.3.4.");
    for (int i = 0; i < 8; i++) {
        const auto applied = apply(kernel, table({a, b}), observer());
        ASSERT_TRUE(applied) << applied.error().message;
        ASSERT_TRUE(applied->joined);
        EXPECT_EQ(applied->joined->sets, (std::vector<std::string>{"a", "b"}));
        for (int last = 0; last < 256; last++) {
            const auto key = parse_key("198.51.100." + std::to_string(last), SIEVE_FIELD_SRC);
            EXPECT_NE(applied->joined->filter.find(*key), 0U) << last;
        }
    }
}

TEST_F(Join, OneSetIsNotJoined) {
    const auto applied = apply(kernel, table({set("a", "192.0.2.1")}), observer());
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_FALSE(applied->joined);
    EXPECT_TRUE(remarked("nothing is joined: that takes two sets of the same fields"));
}

TEST_F(Join, AFilterThatFailsItsTestChangesNothing) {
    kernel.refuse("test joint", ErrorKind::bad_input);
    const auto applied = apply(kernel, table({set("a", "192.0.2.1"), set("b", "192.0.2.2")}), observer());
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().kind, ErrorKind::bad_input);
    EXPECT_FALSE(kernel.changed());
}

} // namespace
} // namespace sieve::control
