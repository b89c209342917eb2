// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/change_keys.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/key_text.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class ChangeKeys : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    // A set in force, of that kind and with these fields.
    void put(const std::string& name, sieve_kind kind, std::uint32_t fields = SIEVE_FIELD_SRC) {
        FeedSpec spec;
        spec.build.kind.kind = kind;
        spec.build.bits_per_key = 24;
        spec.fields = fields;
        std::vector<std::string> lines;
        for (int i = 0; i < 200; i++)
            lines.push_back("192.0.2." + std::to_string(i) + (fields == SIEVE_FIELD_SRC ? "" : " 53"));
        const auto image = Image::load(files.image(name, lines, spec));
        kernel.put_filter(kernel.put(name).map_id, *image);
    }
    static KeySet keys(const std::vector<std::string>& texts, std::uint32_t fields = SIEVE_FIELD_SRC) {
        KeySet set(fields);
        for (const auto& text : texts) set.add(*parse_key(text, fields));
        return set;
    }
};

TEST_F(ChangeKeys, InsertsAndErasesInPlace) {
    put("set", SIEVE_KIND_DDLCBF);
    EXPECT_EQ(find_changeable(kernel, eth0, "set")->fields, SIEVE_FIELD_SRC);
    const auto in = insert(kernel, eth0, "set", keys({"203.0.113.1", "192.0.2.7"}), {});
    ASSERT_TRUE(in) << in.error().message;
    EXPECT_EQ(in->done, 1U);
    EXPECT_EQ(in->told.size(), 1U);
    const auto out = erase(kernel, eth0, "set", keys({"203.0.113.1"}), {});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->done, 1U);
    EXPECT_EQ(erase(kernel, eth0, "set", keys({"203.0.113.1"}), {})->done, 0U);
    EXPECT_EQ(kernel.count("lock"), 3U) << "reading the fields takes no lock";
}

TEST_F(ChangeKeys, OfAKindThatHasNoSingleKeys) {
    put("set", SIEVE_KIND_BLOCKED);
    const auto refused = find_changeable(kernel, eth0, "set");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::fixed_keys);
    EXPECT_EQ(refused.error().message.find("--kind"), std::string::npos);
}

TEST_F(ChangeKeys, OfAVerifiedSet) {
    put("set", SIEVE_KIND_DDLCBF);
    kernel.running.table.sets[0].exact_id = 9;
    EXPECT_EQ(find_changeable(kernel, eth0, "set").error().kind, ErrorKind::bad_input);
}

TEST_F(ChangeKeys, OfASetSwappedForOneOfOtherFields) {
    put("set", SIEVE_KIND_DDLCBF);
    const std::uint32_t both = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    const auto refused = insert(kernel, eth0, "set", keys({"192.0.2.1 53"}, both), {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::changed_meanwhile);
    EXPECT_EQ(insert(kernel, eth0, "other", keys({"192.0.2.1"}), {}).error().kind, ErrorKind::no_such_set);
}

} // namespace
} // namespace sieve::control
