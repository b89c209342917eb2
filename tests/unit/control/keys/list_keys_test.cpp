// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/list_keys.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using Texts = std::vector<std::string>;

// What `list` says of a set of ranges in force that was made of these lines.
Texts listed(const Texts& lines) {
    test::Files files;
    test::FakeKernel kernel;
    FeedSpec spec;
    spec.build.kind.kind = SIEVE_KIND_RANGES;
    SetSpec set;
    set.name = "set";
    set.feed = test::Files::quick(spec);
    set.sources = {files.feed("list", lines)};
    const auto opened = open_set(set, {});
    if (!opened) return {opened.error().message};
    kernel.put_filter(kernel.put("set", SIEVE_ACTION_DROP, false).map_id, opened->image);
    const auto list = list_keys(kernel, {.interface = "eth0"}, "set");
    if (!list) return {list.error().message};
    EXPECT_TRUE(list->whole);
    EXPECT_EQ(list->unlisted, 0U);
    Texts texts;
    for (const ListedKey& key : list->keys) texts.push_back(listed_key_text(key, *list));
    return texts;
}

TEST(ListKeys, RangesAreTheFewestPrefixes) {
    EXPECT_EQ(listed({"192.0.2.1", "10.0.0.0/25", "10.0.0.128/25", "10.0.0.7", "203.0.113.4-203.0.113.9"}),
              (Texts{"10.0.0.0/24", "192.0.2.1/32", "203.0.113.4/30", "203.0.113.8/31"}));
    EXPECT_EQ(listed({"2001:db8::1", "2001:db8:0:1::/64", "2001:db8:0:2::-2001:db8:0:3::7"}),
              (Texts{"2001:db8::1/128", "2001:db8:0:1::/64", "2001:db8:0:2::/64", "2001:db8:0:3::/125"}));
}

// An IPv6 range that includes v4-mapped addresses does not mean IPv4, and what is listed does not either.
TEST(ListKeys, RangesOfIpv6AroundIpv4LeaveItAlone) {
    EXPECT_EQ(listed({"::/64", "10.0.0.0/8"}), (Texts{"::/64", "10.0.0.0/8"}));
    const Texts around = listed({"::fffe:8000:0-::1:0:0:8000", "10.0.0.7"});
    EXPECT_EQ(around, (Texts{"::fffe:8000:0/97", "10.0.0.7/32", "::1:0:0:0/113", "::1:0:0:8000/128"}));
}

} // namespace
} // namespace sieve::control
