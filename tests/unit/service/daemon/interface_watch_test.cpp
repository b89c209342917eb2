// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/interface_watch.hpp"

#include <gtest/gtest.h>

namespace sieve::service {
namespace {

using Set = std::set<std::string>;

TEST(InterfaceNames, OnlyNamesThatComeGoOrChangeAreChanges) {
    InterfaceNames names;
    names.know(1, "lo");
    names.know(7, "eth0");
    InterfaceChange change;
    names.is_there(7, "eth0", change); // its carrier, or a program was attached
    EXPECT_TRUE(change.names.empty());
    names.is_there(7, "wan0", change);
    EXPECT_EQ(change.names, (Set{"eth0", "wan0"}));
    change = {};
    names.is_there(8, "eth0", change);
    EXPECT_EQ(change.names, Set{"eth0"});
    change = {};
    names.is_gone(8, "eth0", change);
    names.is_there(8, "eth0", change); // came back before anybody looked
    EXPECT_EQ(change.names, Set{"eth0"});
    change = {};
    names.is_gone(99, "unknown", change);
    EXPECT_EQ(change.names, Set{"unknown"});
    EXPECT_FALSE(change.everything);
}

TEST(InterfaceWatch, NeedsNoPrivilege) {
    EventLoop loop = EventLoop::make().value();
    const auto watch = InterfaceWatch::start(loop, [](const InterfaceChange&) {});
    EXPECT_TRUE(watch);
}

} // namespace
} // namespace sieve::service
