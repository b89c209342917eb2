// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/local_node.hpp"

#include <gtest/gtest.h>

#include "libsieve/control/real_kernel.hpp"

namespace sieve::fleet {
namespace {

// A manifest that says otherwise must not come into force, whether the configuration names the action or not.
TEST(HostNodeTest, KnowsWhatAMatchDoesHere) {
    service::Configuration configuration;
    configuration.sets.resize(5);
    const char* const names[] = {"named", "usual", "guests", "both", "nowhere"};
    for (std::size_t i = 0; i < configuration.sets.size(); i++) configuration.sets[i].name = names[i];
    configuration.sets[0].action = {.action = SIEVE_ACTION_COUNT};
    configuration.interfaces.resize(2);
    configuration.interfaces[0].sets = {"named", "usual", "both"};
    configuration.interfaces[1].default_action = SIEVE_ACTION_DROP;
    configuration.interfaces[1].sets = {"guests", "both"};
    service::watching::Statistics statistics({});
    statistics.set_configuration(configuration);
    control::RealKernel kernel;
    const auto sets = HostNode(statistics, kernel).sets();
    EXPECT_EQ(sets.at("named").action, "count");
    EXPECT_EQ(sets.at("usual").action, "drop");
    EXPECT_EQ(sets.at("guests").action, "pass");
    EXPECT_EQ(sets.at("both").action, "drop and pass");
    EXPECT_EQ(sets.at("nowhere").action, "");
}

TEST(HostNodeTest, KnowsWhyASetChangesInPlace) {
    service::Configuration configuration;
    configuration.sets.resize(3);
    const std::string file = "/var/lib/xdp-sieve/fleet/current/bad";
    for (service::SetConfiguration& set : configuration.sets) set.sources = {service::FileSpec{file}};
    configuration.sets[0].name = "whole";
    configuration.sets[1].name = "ddlcbf";
    configuration.sets[1].feed.build.kind.kind = SIEVE_KIND_DDLCBF;
    configuration.sets[2].name = "bans";
    configuration.sets[2].sources.push_back(service::BanSpec{});
    service::watching::Statistics statistics({});
    statistics.set_configuration(configuration);
    control::RealKernel kernel;
    const auto sets = HostNode(statistics, kernel).sets();
    EXPECT_EQ(sets.at("whole").in_place, "");
    EXPECT_EQ(sets.at("ddlcbf").in_place, "is of kind ddlcbf");
    EXPECT_EQ(sets.at("bans").in_place, "has bans or CrowdSec's decisions among its sources");
}

} // namespace
} // namespace sieve::fleet
