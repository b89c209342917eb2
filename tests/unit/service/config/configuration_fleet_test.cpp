// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_fleet.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/service/config/configuration_text.hpp"
#include "unit/messages.hpp"

namespace sieve::service {
namespace {

ReadConfiguration read(const std::string& text) {
    return read_configuration(text, "/etc/xdp-sieve/xdp-sieve.toml");
}

constexpr char smallest[] = R"([fleet]
name = "edge"
trusted-keys = ["edge.pub"]
[fleet.etcd]
endpoints = ["https://a:2379"]
[fleet.store]
url = "https://store/blobs/"
)";

TEST(ConfigurationFleet, FillsInDefaults) {
    const ReadConfiguration got = read(smallest);
    for (const Mistake& mistake : got.mistakes) ADD_FAILURE() << mistake_text("", mistake);
    ASSERT_TRUE(got.configuration.fleet);
    FleetConfiguration expected;
    expected.name = "edge";
    expected.trusted_keys = {"/etc/xdp-sieve/edge.pub"};
    expected.etcd.endpoints = {"https://a:2379"};
    expected.store.url = "https://store/blobs";
    EXPECT_EQ(*got.configuration.fleet, expected);
    EXPECT_TRUE(got.configuration.interfaces.empty()) << "a host that only publishes has none";
}

TEST(ConfigurationFleet, TakesEveryKeyAndPrintsIt) {
    const ReadConfiguration got = read(R"([fleet]
name = "edge"
trusted-keys = ["/a.pub", "b.pub"]
node = "n1"
labels = ["canary", "site-a"]
report = "10s"
[fleet.etcd]
endpoints = ["https://a:2379", "http://[::1]:2379/"]
certificates = "ca.pem"
client-certificate = "c.pem"
client-key = "c.key"
user = "node"
password-file = "/p"
[fleet.store]
url = "https://store"
certificates = "ca2.pem"
client-certificate = "d.pem"
region = "eu-west-1"
credentials-file = "keys"
rate = "2M"
)");
    for (const Mistake& mistake : got.mistakes) ADD_FAILURE() << mistake_text("", mistake);
    ASSERT_TRUE(got.configuration.fleet);
    const FleetConfiguration& fleet = *got.configuration.fleet;
    EXPECT_EQ(fleet.labels, (std::vector<std::string>{"canary", "site-a"}));
    EXPECT_EQ(fleet.report, std::chrono::seconds(10));
    EXPECT_EQ(fleet.etcd.endpoints, (std::vector<std::string>{"https://a:2379", "http://[::1]:2379"}));
    EXPECT_EQ(fleet.etcd.access.client_key, "/etc/xdp-sieve/c.key");
    EXPECT_EQ(fleet.etcd.password_file, "/p");
    EXPECT_EQ(fleet.store.region, "eu-west-1");
    EXPECT_EQ(fleet.store.credentials_file, "/etc/xdp-sieve/keys");
    EXPECT_EQ(fleet.store.rate, std::uint64_t{2} << 20);
    const ReadConfiguration again = read(configuration_text(got.configuration));
    ASSERT_TRUE(again.mistakes.empty()) << mistake_text("", again.mistakes.front());
    EXPECT_EQ(again.configuration.fleet, got.configuration.fleet);
}

struct Wrong {
    const char* before;
    const char* after;
    const char* key;
};

TEST(ConfigurationFleet, NamesWhatIsWrong) {
    const std::vector<Wrong> all = {
        {"name = \"edge\"", "name = \"a/b\"", "fleet.name"},
        {"name = \"edge\"\n", "", "fleet"},
        {"[\"edge.pub\"]", "[]", "fleet.trusted-keys"},
        {"trusted-keys = [\"edge.pub\"]\n", "", "fleet"},
        {"https://a:2379", "ftp://a", "fleet.etcd.endpoints"},
        {"[\"https://a:2379\"]", "[]", "fleet.etcd.endpoints"},
        {"https://store/blobs/", "store", "fleet.store.url"},
        {"[fleet.store]\nurl = \"https://store/blobs/\"\n", "", "fleet"},
        {"[fleet.store]\n", "[fleet.store]\nregion = \"x\"\n", "fleet.store"},
        {"[fleet.store]\n", "user = \"x\"\n[fleet.store]\n", "fleet.etcd"},
        {"[fleet.store]\n", "client-key = \"x\"\n[fleet.store]\n", "fleet.etcd.client-key"},
        {"[fleet.etcd]\n", "nodes = 3\n[fleet.etcd]\n", "fleet.nodes"},
        {"[fleet.etcd]\n", "report = \"2h\"\n[fleet.etcd]\n", "fleet.report"},
    };
    for (const Wrong& wrong : all) {
        std::string text = smallest;
        const std::size_t at = text.find(wrong.before);
        ASSERT_NE(at, std::string::npos) << wrong.before;
        text.replace(at, std::string(wrong.before).size(), wrong.after);
        const ReadConfiguration got = read(text);
        ASSERT_EQ(got.mistakes.size(), 1U) << wrong.after;
        EXPECT_EQ(got.mistakes[0].key, wrong.key);
        expect_says(got.mistakes[0]);
    }
}

} // namespace
} // namespace sieve::service
