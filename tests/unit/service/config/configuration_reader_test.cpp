// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_reader.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <variant>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/config/values/configuration_secrets.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::service {
namespace {

ReadConfiguration read(const std::string& text) {
    return read_configuration(text, "/etc/xdp-sieve/xdp-sieve.toml");
}

// The configuration in a text without mistakes.
Configuration right(const std::string& text) {
    ReadConfiguration read = service::read_configuration(text, "/etc/xdp-sieve/xdp-sieve.toml");
    for (const Mistake& mistake : read.mistakes) ADD_FAILURE() << mistake_text("", mistake);
    return std::move(read.configuration);
}

constexpr char interface[] = "[[interface]]\nname = \"eth0\"\nsets = [\"bad\"]\n"; // three lines
constexpr char set[] = "[set.bad]\nsources = [\"bad.txt\"]\n";                     // two more

std::string small() {
    return std::string(interface) + set;
}

TEST(ConfigurationReader, FillsInDefaults) {
    const Configuration configuration = right(small());
    EXPECT_EQ(configuration.state_directory, standard_state_directory);
    EXPECT_EQ(configuration.on_stop, OnStop::keep);
    EXPECT_EQ(configuration.listen, "127.0.0.1:19273");
    ASSERT_EQ(configuration.interfaces.size(), 1U);
    const InterfaceConfiguration& entry = configuration.interfaces[0];
    EXPECT_EQ(entry.name, "eth0");
    EXPECT_EQ(entry.hook, kernel::HookPoint::xdp);
    EXPECT_EQ(entry.default_action, SIEVE_ACTION_PASS);
    EXPECT_EQ(entry.unreadable, SIEVE_ACTION_DROP);
    EXPECT_EQ(entry.sets, std::vector<std::string>{"bad"});
    ASSERT_EQ(configuration.sets.size(), 1U);
    const SetConfiguration& bad = configuration.sets[0];
    EXPECT_EQ(bad.sources, (std::vector<SourceSpec>{FileSpec{"/etc/xdp-sieve/bad.txt"}}));
    EXPECT_FALSE(bad.action);
    EXPECT_EQ(bad.feed.fields, SIEVE_FIELD_SRC);
    EXPECT_EQ(bad.feed.build.kind.kind, automatic_kind);
    EXPECT_FALSE(bad.feed.build.bits_per_key) << "the kind decides";
    EXPECT_EQ(bad.refresh, std::chrono::hours(1));
}

TEST(ConfigurationReader, TakesEveryKey) {
    const Configuration configuration = right(R"(
[service]
state-directory = "/srv/sieve"
on-stop = "unload"
listen = "[::1]:9000"
geo = ["countries.mmdb", "/srv/geo/"]
[[interface]]
name = "eth*"
hook = "xdp"
mode = "skb"
default = "drop"
unreadable = "pass"
replies = "pass"
max-flows = 4096
protect-host = false
protect = ["198.51.100.7", "2001:db8:7::/120"]
priority = 20
chain = "pass,drop"
sets = ["friends", "out"]
[[interface]]
name = "eth*"
hook = "egress"
sets = ["out"]
[set.friends]
sources = ["/a.txt", "/lists/", "lists.d/*.netset"]
action = "pass"
verify = true
refresh = "90s"
kind = "bloom"
fpr = 1e-5
choices = 1
effort = "best"
max-probes = 6
skip-invalid = true
host-bits = "mask"
except = "partners/all.txt"
[set.friends.guards]
most-shrink = 0.1
most-growth = 2
most-ipv4 = 0.5
most-ipv6 = 1
protect-host = false
protect = ["192.0.2.0/24", "2001:db8::1"]
[set.out]
sources = "out.txt"
key = "dst,dport"
memory = "64M"
redirect = "cpu:3"
)");
    EXPECT_EQ(configuration.geo,
              (std::vector<SourceSpec>{FileSpec{"/etc/xdp-sieve/countries.mmdb"}, FolderSpec{"/srv/geo/"}}));
    EXPECT_EQ(configuration.interfaces.at(0).replies, SIEVE_ACTION_PASS);
    EXPECT_EQ(configuration.interfaces.at(0).max_flows, 4096U);
    EXPECT_FALSE(configuration.interfaces.at(1).replies);
    EXPECT_EQ(configuration.state_directory, "/srv/sieve");
    EXPECT_EQ(configuration.on_stop, OnStop::unload);
    EXPECT_EQ(configuration.listen, "[::1]:9000");
    ASSERT_EQ(configuration.interfaces.size(), 2U);
    EXPECT_EQ(configuration.interfaces[0].mode, kernel::ModeChoice::skb);
    EXPECT_EQ(configuration.interfaces[0].unreadable, SIEVE_ACTION_PASS);
    EXPECT_FALSE(configuration.interfaces[0].protect_host);
    EXPECT_EQ(configuration.interfaces[0].protect.size(), 2U);
    EXPECT_EQ(configuration.interfaces[0].priority, 20U);
    EXPECT_EQ(configuration.interfaces[0].chain, (1U << 2) | (1U << 1)); // XDP_PASS is 2, XDP_DROP 1
    EXPECT_EQ(configuration.interfaces[1].hook, kernel::HookPoint::egress);
    const SetConfiguration* friends = configuration.find_set("friends");
    ASSERT_NE(friends, nullptr);
    EXPECT_EQ(friends->sources, (std::vector<SourceSpec>{FileSpec{"/a.txt"}, FolderSpec{"/lists/"},
                                                         GlobSpec{"/etc/xdp-sieve/lists.d/*.netset"}}));
    EXPECT_TRUE(friends->verify);
    EXPECT_EQ(friends->refresh, std::chrono::seconds(90));
    EXPECT_EQ(friends->feed.build.kind.kind, SIEVE_KIND_BLOOM);
    EXPECT_EQ(friends->feed.build.fpr, 1e-5);
    EXPECT_FALSE(friends->feed.build.bits_per_key);
    EXPECT_EQ(friends->feed.build.prefixes.max_probes, 6U);
    EXPECT_TRUE(friends->feed.skip_invalid);
    EXPECT_TRUE(friends->feed.mask_host_bits);
    EXPECT_EQ(friends->feed.except, "/etc/xdp-sieve/partners/all.txt");
    EXPECT_FALSE(friends->feed.allow_wide);
    EXPECT_EQ(friends->guards.most_shrink, 0.1);
    EXPECT_FALSE(friends->guards.protect_host);
    EXPECT_EQ(friends->guards.protect.size(), 2U);
    const SetConfiguration* out = configuration.find_set("out");
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(out->feed.fields, SIEVE_FIELD_DST | SIEVE_FIELD_DPORT);
    EXPECT_EQ(out->feed.build.memory, 64U << 20);
    ASSERT_TRUE(out->action);
    EXPECT_EQ(out->action->target, "cpu:3");
}

// The sources of the set `bad` in a text without mistakes.
std::vector<SourceSpec> sources(const std::string& value) {
    return right(std::string(interface) + "[set.bad]\nsources = " + value + "\n").sets.at(0).sources;
}

TEST(ConfigurationReader, TakesUrls) {
    EXPECT_EQ(sources("[\"https://lists.example/a?b\", \"http://127.0.0.1:8080/x\"]"),
              (std::vector<SourceSpec>{HttpSpec{.url = "https://lists.example/a?b"},
                                       HttpSpec{.url = "http://127.0.0.1:8080/x"}}));
    EXPECT_EQ(sources("{ url = \"https://lists.example/a\" }"),
              (std::vector<SourceSpec>{HttpSpec{.url = "https://lists.example/a"}}));
    EXPECT_EQ(sources("[{ url = \"https://lists.example/a\", certificates = \"ca.pem\", proxy = "
                      "\"http://proxy:3128\", image = true, timeout = \"20s\", most-bytes = \"2M\" }]"),
              (std::vector<SourceSpec>{
                  HttpSpec{.url = "https://lists.example/a",
                           .access = {.server = {"/etc/xdp-sieve/ca.pem"}, .proxy = {"http://proxy:3128"}},
                           .limits = {std::chrono::seconds(20), 2U << 20},
                           .image = true}}));
}

constexpr const char* all_access =
    "certificates = \"ca.pem\", client-certificate = \"/c.pem\", client-key = \"c.key\", header-file = "
    "\"headers\", "
    "username = \"us er\", password-file = \"/pw\", proxy = \"http://p:3128\", proxy-username = \"pu\", "
    "proxy-password-file = \"ppw\", user-agent = \"Mozilla/5.0 (X11)\"";

TEST(ConfigurationReader, TakesHowAServerIsAsked) {
    const HttpAccess access{
        .server = {"/etc/xdp-sieve/ca.pem", "/c.pem", "/etc/xdp-sieve/c.key"},
        .header_file = "/etc/xdp-sieve/headers",
        .username = "us er",
        .password_file = "/pw",
        .proxy = {"http://p:3128", "pu", "/etc/xdp-sieve/ppw"},
        .user_agent = "Mozilla/5.0 (X11)",
    };
    EXPECT_EQ(sources("{ url = \"https://a\", " + std::string(all_access) + " }"),
              (std::vector<SourceSpec>{HttpSpec{.url = "https://a", .access = access}}));
    EXPECT_EQ(sources("{ crowdsec = \"https://a\", " + std::string(all_access) + " }"),
              (std::vector<SourceSpec>{CrowdsecSpec{.url = "https://a", .access = access}}));
}

TEST(ConfigurationReader, ServersWithoutAProxyOfTheirOwnHaveThatOfTheService) {
    const std::string service = "[service]\nproxy = \"http://p\"\nproxy-username = \"u\"\n"
                                "proxy-password-file = \"pw\"\nuser-agent = \"Lists/1\"\n";
    const Configuration configuration =
        right(service + interface +
              "[set.bad]\nsources = [\"http://a\", { url = \"http://b\", proxy = \"\" }, "
              "{ url = \"http://c\", proxy = \"http://q\", user-agent = \"\" }]\n");
    const HttpAccess access{.proxy = {"http://p", "u", "/etc/xdp-sieve/pw"}, .user_agent = "Lists/1"};
    EXPECT_EQ(configuration.http, access);
    EXPECT_EQ(configuration.sets.at(0).sources,
              (std::vector<SourceSpec>{
                  HttpSpec{.url = "http://a", .access = access},
                  HttpSpec{.url = "http://b", .access = {.user_agent = "Lists/1"}},
                  HttpSpec{.url = "http://c", .access = {.proxy = {"http://q"}}},
              }));
    EXPECT_EQ(right(configuration_text(configuration)).sets.at(0).sources, configuration.sets.at(0).sources);
}

TEST(ConfigurationReader, TakesCommands) {
    EXPECT_EQ(
        sources("{ command = [\"export-list\", \"--all\", \"\"], user = \"lists\", most-bytes = 1000 }"),
        (std::vector<SourceSpec>{CommandSpec{
            .arguments = {"export-list", "--all", ""}, .user = "lists", .limits = {.most_bytes = 1000}}}));
    EXPECT_EQ(sources("{ command = \"export\", image = true }"),
              (std::vector<SourceSpec>{CommandSpec{.arguments = {"export"}, .image = true}}));
    // A path starts from the configuration's folder, a name is found in PATH.
    EXPECT_EQ(sources("{ command = \"./export\" }"),
              (std::vector<SourceSpec>{CommandSpec{.arguments = {"/etc/xdp-sieve/export"}}}));
}

TEST(ConfigurationReader, TakesCrowdsec) {
    EXPECT_EQ(sources("{ crowdsec = \"http://127.0.0.1:8080\", key-file = \"key\" }"),
              (std::vector<SourceSpec>{
                  CrowdsecSpec{.url = "http://127.0.0.1:8080", .key_file = "/etc/xdp-sieve/key"}}));
    EXPECT_EQ(
        sources(
            "{ crowdsec = \"https://lapi\", key-file = \"/key\", types = [\"ban\", \"captcha\"], scopes = "
            "[\"Range\"], origins = [\"cscli\"], scenarios-containing = [\"ssh\"], "
            "scenarios-not-containing = [\"probing\", \"crawl\"], poll = \"1m\", certificates = \"/ca.pem\" "
            "}"),
        (std::vector<SourceSpec>{CrowdsecSpec{.url = "https://lapi",
                                              .access = {.server = {"/ca.pem"}},
                                              .key_file = "/key",
                                              .types = {"ban", "captcha"},
                                              .scopes = {"Range"},
                                              .origins = {"cscli"},
                                              .scenarios_containing = {"ssh"},
                                              .scenarios_not_containing = {"probing", "crawl"},
                                              .poll = std::chrono::minutes(1)}}));
}

std::string crowdsec(const std::string& more) {
    return "{ crowdsec = \"http://lapi:8080\", key-file = \"/key\"" + more + " }";
}

TEST(ConfigurationReader, TakesBans) {
    EXPECT_EQ(sources("[\"bans\"]"), std::vector<SourceSpec>{BanSpec{}});
    EXPECT_EQ(sources("\"bans\""), std::vector<SourceSpec>{BanSpec{}});
    // A file of that name.
    EXPECT_EQ(sources("[\"./bans\"]"), std::vector<SourceSpec>{FileSpec{"/etc/xdp-sieve/bans"}});
    const Configuration configuration = right(std::string("[service]\nban-group = \"ops\"\n") + interface +
                                              "[set.bad]\nsources = [\"bans\"]\n");
    EXPECT_EQ(configuration.ban_group, "ops");
    const SetConfiguration& set = configuration.sets[0];
    EXPECT_TRUE(follows_bans(set));
    EXPECT_TRUE(follows_stream(set));
    EXPECT_EQ(followed_stream(set), nullptr);
    EXPECT_EQ(set.feed.build.kind.kind, static_cast<std::uint32_t>(SIEVE_KIND_EXACT));
    // Beside other sources.
    const Configuration many = right(std::string(interface) + "[set.bad]\nsources = [\"/a.txt\", " +
                                     crowdsec("") + ", \"bans\", \"/b/\"]\n");
    EXPECT_TRUE(follows_bans(many.sets[0]));
    ASSERT_NE(followed_stream(many.sets[0]), nullptr);
    EXPECT_EQ(sources_of_lists(many.sets[0]),
              (std::vector<SourceSpec>{FileSpec{"/a.txt"}, FolderSpec{"/b/"}}));
    EXPECT_EQ(right(small()).ban_group, "");
    EXPECT_FALSE(follows_stream(right(small()).sets[0]));
}

TEST(Configuration, TellsWhichSetFollowsAStream) {
    const Configuration configuration = right(
        std::string(interface) + "[set.bad]\nsources = { crowdsec = \"http://lapi\", key-file = \"key\" }\n");
    const CrowdsecSpec* stream = followed_stream(configuration.sets[0]);
    ASSERT_NE(stream, nullptr);
    EXPECT_EQ(stream->url, "http://lapi");
    EXPECT_EQ(followed_stream(right(small()).sets[0]), nullptr);
}

// "a.a.a"
std::string repeated(const std::string& part, int times, const std::string& between) {
    std::string text = part;
    for (int i = 1; i < times; i++) text += between + part;
    return text;
}

struct Wrong {
    const char* name;
    std::string text;
    std::uint32_t line;
    std::string key;
};

class WrongConfiguration : public testing::TestWithParam<Wrong> {};

TEST_P(WrongConfiguration, IsRefusedWithLineAndKey) {
    const ReadConfiguration read = service::read_configuration(GetParam().text, "x.toml");
    ASSERT_FALSE(read.mistakes.empty());
    const Mistake& mistake = read.mistakes.front();
    EXPECT_EQ(mistake.line, GetParam().line) << mistake_text("x.toml", mistake);
    EXPECT_EQ(mistake.key, GetParam().key) << mistake_text("x.toml", mistake);
    expect_says(mistake);
}

// A further line in the set: line 6 of the file.
std::string in_set(const std::string& line) {
    return small() + line + "\n";
}
// A further line in the interface: line 4.
std::string in_interface(const std::string& line) {
    return std::string(interface) + line + "\n" + set;
}

// A country or a network is a choice from the data.
TEST(ConfigurationReader, TakesCountriesAndNetworks) {
    const std::string service = "[service]\ngeo = [\"geo.mmdb\", \"https://lists.example/asn.csv\"]\n";
    const Configuration configuration =
        right(service + interface + "[set.bad]\nsources = [\"country:de\", \"asn:3320\", \"asn:AS64500\"]\n");
    const SetConfiguration& set = configuration.sets.at(0);
    EXPECT_EQ(set.sources, configuration.geo);
    EXPECT_EQ(set.sources.size(), 2U);
    EXPECT_EQ(set.feed.format, (ListFormat{ListSyntax::geo, {"DE", "AS3320", "AS64500"}}));
    // So is the text that is made of it, and a file may have any name.
    EXPECT_EQ(right(configuration_text(configuration)).sets.at(0).sources, set.sources);
    EXPECT_EQ(sources("\"./country:DE\""), std::vector<SourceSpec>{FileSpec{"/etc/xdp-sieve/country:DE"}});
}

// The whole set, with these sources: line 5 of the file.
std::string with_sources(const std::string& value) {
    return std::string(interface) + "[set.bad]\nsources = " + value + "\n";
}
const Wrong wrong[] = {
    {"NotToml", small() + "sources = [\n", 6, ""},
    {"KeyThatParserGivesUpOn", small() + "[[=interface]]\n", 6, ""},
    {"KeyOfTooManyParts", small() + "x = 1\n" + repeated("a", 33, ".") + " = 1\n", 7, ""},
    {"HeadOfTooManyParts", small() + "[" + repeated("'a'", 150000, " . ") + "]\n", 6, ""},
    {"TooManyBrackets", in_set("sources = " + std::string(150000, '[')), 6, ""},
    {"TooManyBraces", in_set("sources = " + repeated("{x", 150000, " = ")), 6, ""},
    {"DepthAfterAString", in_set("x = \"\"\"\\\"\"\"a\"\"\"\"\"\n" + repeated("a", 33, ".") + " = 1"), 7, ""},
    {"KeyTwice", in_set("sources = []"), 6, ""},
    {"UnknownTable", small() + "[sets.x]\n", 6, "sets"},
    {"UnknownKey", in_set("souces = []"), 6, "set.bad.souces"},
    {"UnknownKeyWithoutHint", in_set("colour = 1"), 6, "set.bad.colour"},
    {"UnknownServiceKey", small() + "[service]\nstate_directory = \"/x\"\n", 7, "service.state_directory"},
    {"UnknownInterfaceKey", in_interface("defualt = \"drop\""), 4, "interface.defualt"},
    {"UnknownGuard", in_set("guards.most-shrnk = 1"), 6, "set.bad.guards.most-shrnk"},
    {"RelativeStateDirectory", small() + "[service]\nstate-directory = \"x\"\n", 7,
     "service.state-directory"},
    {"OnStop", small() + "[service]\non-stop = \"die\"\n", 7, "service.on-stop"},
    {"ListenWithoutPort", small() + "[service]\nlisten = \"127.0.0.1\"\n", 7, "service.listen"},
    {"ListenPortZero", small() + "[service]\nlisten = \"127.0.0.1:0\"\n", 7, "service.listen"},
    {"ListenName", small() + "[service]\nlisten = \"localhost:19273\"\n", 7, "service.listen"},
    {"ListenWithoutBrackets", small() + "[service]\nlisten = \"::1:19273\"\n", 7, "service.listen"},
    {"ListenNumber", small() + "[service]\nlisten = 19273\n", 7, "service.listen"},
    {"BanGroupOfTwoLines", small() + "[service]\nban-group = \"ops\\nroot\"\n", 7, "service.ban-group"},
    {"BanGroupEmpty", small() + "[service]\nban-group = \"\"\n", 7, "service.ban-group"},
    {"BanGroupNumber", small() + "[service]\nban-group = 7\n", 7, "service.ban-group"},
    {"NoInterface", "[set.bad]\nsources = [\"x\"]\n", 0, "interface"},
    {"InterfaceIsTable", "[interface]\nname = \"eth0\"\n", 1, "interface"},
    {"InterfaceWithoutName", "[[interface]]\nsets = [\"bad\"]\n" + std::string(set), 1, "interface"},
    {"InterfaceNameTooLong",
     "[[interface]]\nname = \"a-name-of-16-abc\"\nsets = [\"bad\"]\n" + std::string(set), 2,
     "interface.name"},
    {"InterfaceTwice", std::string(interface) + interface + set, 5, "interface.name"},
    {"InterfaceWithoutSets", "[[interface]]\nname = \"eth0\"\n" + std::string(interface) + set, 1,
     "interface"},
    {"Hook", in_interface("hook = \"tc\""), 4, "interface.hook"},
    {"Mode", in_interface("mode = \"fast\""), 4, "interface.mode"},
    {"ModeAtTc", in_interface("mode = \"skb\"\nhook = \"egress\""), 4, "interface.mode"},
    {"ChainAtTc", in_interface("chain = \"pass\"\nhook = \"egress\""), 4, "interface.chain"},
    {"Default", in_interface("default = \"count\""), 4, "interface.default"},
    {"Unreadable", in_interface("unreadable = \"count\""), 4, "interface.unreadable"},
    {"BansThatWouldBeLetIn", std::string(interface) + "default = \"drop\"\n[set.bad]\nsources = [\"bans\"]\n",
     5, "set.bad"},
    {"DecisionsThatWouldBeLetIn",
     std::string(interface) + "default = \"drop\"\n[set.bad]\nsources = [" + crowdsec("") + "]\n", 5,
     "set.bad"},
    {"Replies", in_interface("replies = true"), 4, "interface.replies"},
    {"RepliesOfASet", in_set("replies = \"maybe\""), 6, "set.bad.replies"},
    {"RepliesOfASetThatPasses", in_set("action = \"pass\"\nreplies = \"drop\""), 7, "set.bad.replies"},
    {"RepliesOfASetThatCounts", in_set("action = \"count\"\nreplies = \"drop\""), 7, "set.bad.replies"},
    {"RepliesOfASetThatPassesUnderDrop",
     std::string(interface) + "default = \"drop\"\n" + set + "replies = \"drop\"\n", 5, "set.bad"},
    {"MaxFlows", in_interface("max-flows = 63"), 4, "interface.max-flows"},
    {"MaxFlowsText", in_interface("max-flows = \"many\""), 4, "interface.max-flows"},
    {"MaxFlowsWithoutReplies", in_interface("replies = \"drop\"\nmax-flows = 4096"), 5,
     "interface.max-flows"},
    {"MaxFlowsUnderPass", in_interface("max-flows = 4096"), 4, "interface.max-flows"},
    {"MaxFlowsWhereAnswersLeave", in_interface("default = \"drop\"\nhook = \"egress\"\nmax-flows = 4096"), 6,
     "interface.max-flows"},
    {"Priority", in_interface("priority = 65536"), 4, "interface.priority"},
    {"Chain", in_interface("chain = \"never\""), 4, "interface.chain"},
    {"UnknownSet", "[[interface]]\nname = \"eth0\"\nsets = [\"bda\"]\n" + std::string(set), 3,
     "interface.sets"},
    {"SetTwiceInOrder", "[[interface]]\nname = \"eth0\"\nsets = [\"bad\", \"bad\"]\n" + std::string(set), 3,
     "interface.sets"},
    {"LimitUnderDrop",
     "[[interface]]\nname = \"eth0\"\nsets = [\"bad\"]\ndefault = \"drop\"\n" + std::string(set) +
         "limit = 100\n",
     5, "set.bad"},
    {"UnusedSet", small() + "[set.spare]\nsources = [\"x\"]\n", 6, "set.spare"},
    {"SetName", small() + "[set.\"b d\"]\nsources = [\"x\"]\n", 6, "set.b d"},
    {"SetNameOfAFolder", small() + "[set.\"..\"]\nsources = [\"x\"]\n", 6, "set..."},
    {"NoSources", std::string(interface) + "[set.bad]\nkey = \"src\"\n", 4, "set.bad"},
    {"EmptySources", std::string(interface) + "[set.bad]\nsources = []\n", 5, "set.bad.sources"},
    {"SourceTwice", std::string(interface) + "[set.bad]\nsources = [\"a\", \"./a\"]\n", 5, "set.bad.sources"},
    {"SourceIsNumber", std::string(interface) + "[set.bad]\nsources = [7]\n", 5, "set.bad.sources"},
    {"CountryWithoutData", with_sources("\"country:DE\""), 5, "set.bad.sources"},
    {"CountryOfThreeLetters", with_sources("\"country:DEU\""), 5, "set.bad.sources"},
    {"NetworkWithoutNumber", with_sources("\"asn:AS0\""), 5, "set.bad.sources"},
    {"CountryTwice", "service.geo = \"geo\"\n" + with_sources("[\"country:DE\", \"country:de\"]"), 6,
     "set.bad.sources"},
    {"CountryAndFile", "service.geo = \"geo\"\n" + with_sources("[\"country:DE\", \"a\"]"), 6,
     "set.bad.sources"},
    {"CountryAndFormat", "service.geo = \"geo\"\n" + with_sources("\"country:DE\"\nformat = \"csv\""), 7,
     "set.bad.format"},
    {"GeoOfBans", "service.geo = \"bans\"\n" + small(), 1, "service.geo"},
    {"GeoNumber", "service.geo = 7\n" + small(), 1, "service.geo"},
    {"GeoEmptyText", "service.geo = [\"\"]\n" + small(), 1, "service.geo"},
    {"GeoScheme", "service.geo = [\"ftp://lists.example/geo\"]\n" + small(), 1, "service.geo"},
    {"GeoTwice", "service.geo = [\"a.mmdb\", \"./a.mmdb\"]\n" + small(), 1, "service.geo"},
    {"SourceScheme", with_sources("[\"ftp://lists.example/a\"]"), 5, "set.bad.sources"},
    {"SourceUrlWithoutHost", with_sources("[\"http://\"]"), 5, "set.bad.sources"},
    {"SourceUrlTwice", with_sources("[\"http://u:secret@a/b\", \"http://u:secret@a/b\"]"), 5,
     "set.bad.sources"},
    {"SourceTableWithoutKind", with_sources("{ timeout = \"1s\" }"), 5, "set.bad.sources"},
    {"SourceTableWithTwoKinds", with_sources("{ url = \"http://a\", command = \"b\" }"), 5,
     "set.bad.sources"},
    {"SourceTableKey", with_sources("{ url = \"http://a\", time-out = \"1s\" }"), 5,
     "set.bad.sources.time-out"},
    {"SourceTableUrl", with_sources("{ url = \"a.txt\" }"), 5, "set.bad.sources.url"},
    {"SourceUserOfUrl", with_sources("{ url = \"http://a\", user = \"x\" }"), 5, "set.bad.sources.user"},
    {"SourceCertificates", with_sources("{ url = \"http://a\", certificates = true }"), 5,
     "set.bad.sources.certificates"},
    {"SourceProxy", with_sources("{ url = \"http://a\", proxy = \"proxy\" }"), 5, "set.bad.sources.proxy"},
    {"SourceProxyUser", with_sources("{ url = \"http://a\", proxy = \"http://u:pw@p\" }"), 5,
     "set.bad.sources.proxy"},
    {"SourceUserAlone", with_sources("{ url = \"http://a\", username = \"u\" }"), 5,
     "set.bad.sources.username"},
    {"SourcePasswordAlone", with_sources("{ url = \"http://a\", password-file = \"u\" }"), 5,
     "set.bad.sources.password-file"},
    {"SourceUserWithColon", with_sources("{ url = \"http://a\", username = \"u:v\", password-file = \"p\" }"),
     5, "set.bad.sources.username"},
    {"SourceProxyUserAlone",
     with_sources("{ url = \"http://a\", proxy-username = \"u\", proxy-password-file = \"p\" }"), 5,
     "set.bad.sources.proxy-username"},
    {"SourceProxyPasswordAlone",
     with_sources("{ url = \"http://a\", proxy = \"http://p\", proxy-password-file = \"p\" }"), 5,
     "set.bad.sources.proxy-password-file"},
    {"SourceProxyUserWithColon",
     with_sources("{ url = \"http://a\", proxy = \"http://p\", proxy-username = \"u:v\", "
                  "proxy-password-file = \"p\" }"),
     5, "set.bad.sources.proxy-username"},
    {"SourceClientKey", with_sources("{ url = \"http://a\", client-key = \"k\" }"), 5,
     "set.bad.sources.client-key"},
    {"SourceClientCertificate", with_sources("{ url = \"http://a\", client-certificate = 1 }"), 5,
     "set.bad.sources.client-certificate"},
    {"SourceUserAgent", with_sources("{ url = \"http://a\", user-agent = \"a\\nX-Evil: b\" }"), 5,
     "set.bad.sources.user-agent"},
    {"SourceHeaderFile", with_sources("{ url = \"http://a\", header-file = 1 }"), 5,
     "set.bad.sources.header-file"},
    {"ServiceProxy", std::string("[service]\nproxy = \"proxy\"\n") + small(), 2, "service.proxy"},
    {"ServiceUserAgent", "[service]\nuser-agent = \"a\\nX-Evil: b\"\n" + small(), 2, "service.user-agent"},
    {"ServiceUserAgentNumber", "[service]\nuser-agent = 5\n" + small(), 2, "service.user-agent"},
    {"SourceTimeout", with_sources("{ url = \"http://a\", timeout = \"25h\" }"), 5,
     "set.bad.sources.timeout"},
    {"SourceMostBytes", with_sources("{ url = \"http://a\", most-bytes = 0 }"), 5,
     "set.bad.sources.most-bytes"},
    {"SourceCommandEmpty", with_sources("{ command = [] }"), 5, "set.bad.sources.command"},
    {"SourceCommandNumber", with_sources("{ command = [\"a\", 1] }"), 5, "set.bad.sources.command"},
    {"SourceCommandUser", with_sources("{ command = \"a\", user = 0 }"), 5, "set.bad.sources.user"},
    {"CrowdsecWithoutKey", with_sources("{ crowdsec = \"http://lapi:8080\" }"), 5, "set.bad.sources"},
    {"CrowdsecKeyFile", with_sources("{ crowdsec = \"http://lapi:8080\", key-file = 7 }"), 5,
     "set.bad.sources.key-file"},
    {"CrowdsecUrl", with_sources("{ crowdsec = \"lapi\", key-file = \"/k\" }"), 5,
     "set.bad.sources.crowdsec"},
    {"CrowdsecScope", with_sources(crowdsec(", scopes = [\"Country\"]")), 5, "set.bad.sources.scopes"},
    {"CrowdsecNoScope", with_sources(crowdsec(", scopes = []")), 5, "set.bad.sources.scopes"},
    {"CrowdsecNoType", with_sources(crowdsec(", types = []")), 5, "set.bad.sources.types"},
    {"CrowdsecTypeTwice", with_sources(crowdsec(", types = [\"ban\", \"ban\"]")), 5, "set.bad.sources.types"},
    {"CrowdsecOrigin", with_sources(crowdsec(", origins = [1]")), 5, "set.bad.sources.origins"},
    {"CrowdsecScenario", with_sources(crowdsec(", scenarios-containing = [1]")), 5,
     "set.bad.sources.scenarios-containing"},
    {"CrowdsecOtherScenario", with_sources(crowdsec(", scenarios-not-containing = [\"\"]")), 5,
     "set.bad.sources.scenarios-not-containing"},
    {"CrowdsecOtherScenarioTwice", with_sources(crowdsec(", scenarios-not-containing = [\"a\", \"a\"]")), 5,
     "set.bad.sources.scenarios-not-containing"},
    {"CrowdsecPoll", with_sources(crowdsec(", poll = \"2h\"")), 5, "set.bad.sources.poll"},
    {"CrowdsecBesideAnother", with_sources("[" + crowdsec("") + ", " + crowdsec(", poll = \"7s\"") + "]"), 5,
     "set.bad.sources"},
    {"CrowdsecOfPorts", with_sources(crowdsec("")) + "key = \"src,dport\"\n", 6, "set.bad.key"},
    {"BansVerified", with_sources("\"bans\"") + "verify = true\n", 6, "set.bad.verify"},
    {"CrowdsecWithARate", with_sources(crowdsec("")) + "fpr = 0.01\n", 6, "set.bad.fpr"},
    {"BansOfASize", with_sources("\"bans\"") + "memory = \"1M\"\n", 6, "set.bad.memory"},
    {"Action", in_set("action = \"reject\""), 6, "set.bad.action"},
    {"RedirectWithNul", in_set("redirect = \"eth1\\u0000x\""), 6, "set.bad.redirect"},
    {"RedirectToALongName", in_set("redirect = \"an-interface-of-no-kernel\""), 6, "set.bad.redirect"},
    {"ActionAndRedirect", in_set("action = \"drop\"\nredirect = \"eth1\""), 7, "set.bad.redirect"},
    {"Ports", in_set("dport = [22, \"ssh\"]"), 6, "set.bad.dport"},
    {"NoPorts", in_set("sport = []"), 6, "set.bad.sport"},
    {"PortsByName", in_set("dport = { ssh = 22 }"), 6, "set.bad.dport"},
    {"Protocol", in_set("proto = \"tpc\""), 6, "set.bad.proto"},
    {"PortsOfIcmp", in_set("proto = \"icmp\"\ndport = 8"), 4, "set.bad"},
    {"Empty", in_set("empty = 0"), 6, "set.bad.empty"},
    {"EmptyOfPairs", in_set("empty = true\nkey = \"src,dport\""), 6, "set.bad.empty"},
    {"Verify", in_set("verify = \"yes\""), 6, "set.bad.verify"},
    {"RefreshWithoutUnit", in_set("refresh = 60"), 6, "set.bad.refresh"},
    {"RefreshZero", in_set("refresh = \"0s\""), 6, "set.bad.refresh"},
    {"RefreshUnit", in_set("refresh = \"5y\""), 6, "set.bad.refresh"},
    {"Kind", in_set("kind = \"cuckoo\""), 6, "set.bad.kind"},
    {"KeyFields", in_set("key = \"dst,src\""), 6, "set.bad.key"},
    {"FprText", in_set("fpr = \"low\""), 6, "set.bad.fpr"},
    {"FprRange", in_set("fpr = 2"), 4, "set.bad"},
    {"TwoSizes", in_set("fpr = 0.1\nbits-per-key = 8"), 4, "set.bad"},
    {"Choices", in_set("choices = 9"), 4, "set.bad"},
    {"AlphaOfBloom", in_set("kind = \"bloom\"\nalpha = 0.5"), 4, "set.bad"},
    {"MaxProbes", in_set("max-probes = 0"), 4, "set.bad"},
    {"SkipInvalid", in_set("skip-invalid = 1"), 6, "set.bad.skip-invalid"},
    {"HostBits", in_set("host-bits = \"keep\""), 6, "set.bad.host-bits"},
    {"HostBitsFlag", in_set("host-bits = true"), 6, "set.bad.host-bits"},
    {"AllowWide", in_set("allow-wide = \"yes\""), 6, "set.bad.allow-wide"},
    {"ExceptEmpty", in_set("except = \"\""), 6, "set.bad.except"},
    {"ExceptArray", in_set("except = [\"a\"]"), 6, "set.bad.except"},
    {"ExceptLive", in_set("except = \"a\"\nkind = \"ddlcbf\""), 6, "set.bad.except"},
    {"ExceptStream", with_sources(crowdsec("")) + "except = \"a\"\n", 6, "set.bad.except"},
    {"Seed", in_set("seed = 1"), 6, "set.bad.seed"},
    {"GuardShare", in_set("guards.most-shrink = 50"), 6, "set.bad.guards.most-shrink"},
    {"GuardIsText", in_set("guards.most-ipv4 = \"all\""), 6, "set.bad.guards.most-ipv4"},
    {"GuardNotANumber", in_set("guards.most-growth = nan"), 6, "set.bad.guards.most-growth"},
    {"ProtectOfAnInterface", in_interface("protect = [\"192.0.2.1\", \"192.0.2.0/33\"]"), 4,
     "interface.protect"},
    {"ProtectTooMany", in_interface("protect = \"10.0.0.0/15\""), 4, "interface.protect"},
    {"Protect", in_set("guards.protect = [\"gateway\"]"), 6, "set.bad.guards.protect"},
};

INSTANTIATE_TEST_SUITE_P(Each, WrongConfiguration, testing::ValuesIn(wrong),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ConfigurationReader, TellsMistakesInTheOrderOfTheFile) {
    const ReadConfiguration wrong = read("[service]\non-stop = 1\n[[interface]]\nname = 2\nsets = [\"x\"]\n");
    ASSERT_EQ(wrong.mistakes.size(), 3U);
    EXPECT_EQ(wrong.mistakes[0].line, 2U);
    EXPECT_EQ(wrong.mistakes[1].line, 4U);
    EXPECT_EQ(wrong.mistakes[2].line, 5U);
}

TEST(ConfigurationReader, NamesFileLineAndColumn) {
    const test::Files files;
    const std::string path = files.feed("x.toml", {"[[interface]]", "name = \"eth0\"", "sets = [\"bad\", 7]",
                                                   "[set.bad]", "sources = [\"x\"]", "verify = 1"});
    expect_error(load_configuration(path), ErrorKind::bad_input);
}

TEST(ConfigurationReader, RefusesWhatIsNoFile) {
    EXPECT_FALSE(load_configuration("/nonexistent/xdp-sieve.toml"));
    EXPECT_FALSE(load_configuration("/"));
    EXPECT_FALSE(load_configuration("/dev/zero"));
    for (const char* path : {"/nonexistent/xdp-sieve.toml", "/", "/dev/zero"})
        EXPECT_FALSE(load_configuration(path, From::files)) << path;
}

TEST(ConfigurationReader, ReadsAPipeUnlessOnlyFilesAreWanted) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const UniqueFd reading(ends[0]);
    {
        const UniqueFd writing(ends[1]);
        ASSERT_TRUE(write_all(writing.get(), small()));
    }
    const std::string path = "/proc/self/fd/" + std::to_string(reading.get());
    EXPECT_FALSE(load_configuration(path, From::files));
    EXPECT_TRUE(load_configuration(path));
    // Nobody will ever write to this one.
    const test::Files files;
    ASSERT_EQ(::mkfifo(files.path("fifo").c_str(), 0600), 0);
    EXPECT_FALSE(load_configuration(files.path("fifo"), From::files));
    EXPECT_TRUE(load_configuration(files.feed("c.toml", {small()}), From::files));
}

TEST(ConfigurationReader, TakesDotsAndBracketsInTextsAndComments) {
    const std::string many = repeated("[x", 100, ".");
    EXPECT_TRUE(read(small() + "# " + many + " \"\"\" '\n" + "except = '" + many + "'\n# \"" + many)
                    .mistakes.empty());
    EXPECT_TRUE(read(small() + "except = \"\"\"\n" + many +
                     "\\\"\"\"\"\" # \"\n"
                     "# '''\n")
                    .mistakes.empty());
    std::string addresses = "protect = [ '192.0.2.1'";
    for (int i = 0; i < 5000; i++) addresses += ", \"192.0.2.1\"";
    const ReadConfiguration configuration = read(std::string(interface) + addresses + " ]\n" + set);
    ASSERT_TRUE(configuration.mistakes.empty()) << mistake_text("", configuration.mistakes[0]);
}

TEST(Configuration, AnInterfacesOwnEntryComesBeforePatterns) {
    const Configuration configuration = right(
        "[[interface]]\nname = \"e*\"\nsets = [\"bad\"]\n[[interface]]\nname = \"eth?\"\nsets = [\"bad\"]\n" +
        small());
    EXPECT_EQ(entry_for(configuration, "eth0", kernel::HookPoint::xdp), &configuration.interfaces[2]);
    EXPECT_EQ(entry_for(configuration, "eth1", kernel::HookPoint::xdp), &configuration.interfaces[0]);
    EXPECT_EQ(entry_for(configuration, "wlan0", kernel::HookPoint::xdp), nullptr);
    Configuration all = configuration;
    all.interfaces[0].name = "*";
    EXPECT_NE(entry_for(all, "wlan0", kernel::HookPoint::xdp), nullptr);
    EXPECT_EQ(entry_for(all, "lo", kernel::HookPoint::xdp), nullptr);
    EXPECT_EQ(entry_for(configuration, "eth0", kernel::HookPoint::egress), nullptr);
}

TEST(Configuration, KnowsWhichSetsTakePackets) {
    const auto takes = [](const std::string& more, const std::string& line) {
        const Configuration configuration = right(std::string(interface) + more + set + line);
        return takes_packets(configuration, configuration.sets.front());
    };
    EXPECT_TRUE(takes("", ""));
    EXPECT_FALSE(takes("default = \"drop\"\n", ""));
    EXPECT_FALSE(takes("", "action = \"count\"\n"));
    EXPECT_TRUE(takes("default = \"drop\"\n", "action = \"drop\"\n"));
    EXPECT_TRUE(takes("", "redirect = \"eth1\"\n"));
}

TEST(ConfigurationReader, AMistakeOfTheServiceIsNotOneOfEachSource) {
    const ReadConfiguration wrong =
        read("[service]\nproxy = \"proxy\"\nproxy-username = \"u:v\"\nuser-agent = \"a\\nb\"\n" +
             with_sources("[{ url = \"http://a\" }, { url = \"http://b\", username = \"u\" }]"));
    std::vector<std::string> keys;
    for (const Mistake& mistake : wrong.mistakes) keys.push_back(mistake.key);
    EXPECT_EQ(keys,
              (std::vector<std::string>{"service.proxy", "service.proxy-username", "service.proxy-username",
                                        "service.user-agent", "set.bad.sources.username"}));
}

TEST(ConfigurationReader, NoMistakeShowsAPassword) {
    for (const char* source : {"\"ftp://u:s3cret@h/\"", "{ url = \"ftp://u:s3cret@h/\" }",
                               "{ url = \"//u:s3cret@h\" }", "{ url = \"http://a\", proxy = \"u:s3cret@p\" }",
                               "{ url = \"http://a\", proxy = \"http://u:s3cret@p\" }"}) {
        const ReadConfiguration wrong = read(with_sources(source));
        ASSERT_EQ(wrong.mistakes.size(), 1U) << source;
        EXPECT_EQ(wrong.mistakes[0].message.find("s3cret"), std::string::npos) << wrong.mistakes[0].message;
    }
}

TEST(ConfigurationSecrets, WhatOthersCanReadIsToldOnce) {
    const std::string user = ", username = \"u\", password-file = \"p\" }";
    const auto exposed = [](const std::string& text) { return exposed_passwords(right(text)); };
    using Words = std::vector<std::string>;
    const auto told = [](const Words& remarks) {
        ASSERT_EQ(remarks.size(), 1U);
        expect_says(remarks[0]);
    };
    const std::string far = with_sources("{ url = \"http://h/a\"" + user);
    told(exposed(far));
    told(exposed("[service]\ngeo = { url = \"http://h/a\"" + user + "\n" + far));
    told(exposed(with_sources(crowdsec(""))));
    EXPECT_EQ(exposed(with_sources("{ crowdsec = \"http://127.0.0.1:8080\", key-file = \"/k\" }")), Words{});
    EXPECT_EQ(exposed(with_sources("{ url = \"https://h/a\"" + user)), Words{});
    EXPECT_EQ(exposed(small()), Words{});
}

// --- configuration_text ------------------------------------------------------------------------------------

TEST(ConfigurationText, ReadsBackToTheSame) {
    const std::string texts[] = {
        small(),
        in_set("empty = true"),
        in_set("fpr = 1e-05\nverify = true\nkind = \"bloom\"\nhashes = 5\nrefresh = \"90s\"\nthreads = 2"),
        in_set("memory = 1e6\nkind = \"ddlcbf\"\nguards.protect = [\"192.0.2.1-192.0.2.9\"]\naction = "
               "\"count\""),
        in_set("alpha = 0.25\nskip-invalid = true\nkey = \"src,dport\"\nredirect = \"eth1\""),
        in_set("limit = \"1000/2000\"\nkind = \"auto\""),
        in_set("except = \"a \\\"b\\\"\"\nhost-bits = \"mask\"\nallow-wide = true"),
        in_set("allow-wide = true\nguards.most-ipv6 = 0.5"),
        in_interface("mode = \"native\"\npriority = 7\nchain = \"none\"\ndefault = \"drop\""),
        "[service]\nlisten = \"\"\n" + in_interface("unreadable = \"pass\"\nprotect-host = false"),
        with_sources("[\"a/\", \"http://a:b@c/d?e#f\", { url = \"https://g\", proxy = \"socks5h://h\", "
                     "timeout = \"1d\", "
                     "most-bytes = 7, image = true }, { command = [\"i\", \"\\u0001\"], user = \"j\", image "
                     "= true }]"),
        in_set("guards.unchecked-images = true"),
        in_set("action = \"drop\"\nreplies = \"drop\""),
        in_set("dport = [22, 443, \"8000-8100\"]\nproto = \"tcp\""),
        in_set("sport = 53\nproto = [\"udp\", 253]"),
        in_interface("replies = \"pass\"\nmax-flows = 100"),
        with_sources(
            crowdsec(", origins = [\"lists\"], scenarios-not-containing = [\"a\", \"b\"], poll = \"90s\", "
                     "usage-metrics = false")),
        with_sources("{ url = \"http://a\", " + std::string(all_access) + " }"),
        with_sources("{ crowdsec = \"http://a\", " + std::string(all_access) + " }"),
        std::string(interface) + "[set.bad]\nsources = [\"a\\\"\\\\b\\u0001\", \"lists/\", \"*.txt\"]\n",
    };
    for (const std::string& text : texts) {
        const Configuration configuration = right(text);
        const std::string printed = configuration_text(configuration);
        const Configuration again = right(printed);
        EXPECT_EQ(configuration_text(again), printed) << text;
        ASSERT_EQ(again.sets.size(), 1U);
        const SetConfiguration& a = configuration.sets[0];
        const SetConfiguration& b = again.sets[0];
        EXPECT_EQ(a.sources, b.sources) << printed;
        EXPECT_EQ(a.feed.fields, b.feed.fields);
        EXPECT_EQ(a.feed.build.fpr, b.feed.build.fpr);
        EXPECT_EQ(a.feed.build.memory, b.feed.build.memory);
        EXPECT_EQ(a.feed.build.kind.alpha, b.feed.build.kind.alpha);
        EXPECT_EQ(a.feed.build.threads, b.feed.build.threads);
        EXPECT_EQ(a.refresh, b.refresh);
        EXPECT_EQ(a.verify, b.verify);
        EXPECT_EQ(a.empty, b.empty);
        EXPECT_EQ(a.guards.unchecked_images, b.guards.unchecked_images);
        EXPECT_EQ(a.action.has_value(), b.action.has_value());
        EXPECT_EQ(a.keeps_replies_out, b.keeps_replies_out);
        EXPECT_TRUE(a.condition == b.condition);
        EXPECT_EQ(configuration.interfaces[0].replies, again.interfaces[0].replies);
        EXPECT_EQ(configuration.interfaces[0].max_flows, again.interfaces[0].max_flows);
        EXPECT_EQ(configuration.listen, again.listen);
        EXPECT_EQ(configuration.interfaces[0].unreadable, again.interfaces[0].unreadable);
        EXPECT_EQ(configuration.interfaces[0].chain, again.interfaces[0].chain);
        EXPECT_EQ(configuration.interfaces[0].mode, again.interfaces[0].mode);
    }
}

TEST(ConfigurationText, NamesEveryKeyThatTheReaderKnows) {
    // The reader lists its keys when it meets an unknown key that resembles none of them.
    const std::string printed = configuration_text(right(small()));
    for (const char* at : {"service.", "set.bad.", "set.bad.guards.", "interface."}) {
        const std::string key = "qqqqqqqqqqqq";
        std::string text;
        if (std::string(at) == "service.") text = small() + "[service]\n" + key + " = 1\n";
        if (std::string(at) == "set.bad.") text = in_set(key + " = 1");
        if (std::string(at) == "set.bad.guards.") text = in_set("guards." + key + " = 1");
        if (std::string(at) == "interface.") text = in_interface(key + " = 1");
        const ReadConfiguration wrong = read(text);
        ASSERT_EQ(wrong.mistakes.size(), 1U);
        std::string list = wrong.mistakes[0].message.substr(wrong.mistakes[0].message.find("expected ") + 9);
        for (std::size_t or_at; (or_at = list.find(" or ")) != std::string::npos;)
            list.replace(or_at, 4, ", ");
        std::istringstream words(list);
        for (std::string word; words >> word;) {
            if (word.back() == ',') word.pop_back();
            // Each configuration has a size in one form only, and one action.
            if (word == "fpr" || word == "memory" || word == "redirect" || word == "limit" ||
                word == "guards")
                continue;
            EXPECT_NE(printed.find("\n" + word + " = "), printed.find("\n# " + word + ":")) << at << word;
        }
    }
}

TEST(ConfigurationText, NamesEveryKeyOfASource) {
    const auto printed = [](const std::string& source) {
        return configuration_text(right(with_sources("{ " + source + " }")));
    };
    struct Kind {
        std::string source;
        std::vector<std::string> keys;
    };
    for (const Kind& kind :
         {Kind{"url = \"http://a\"",
               {"certificates", "client-certificate", "client-key", "header-file", "image", "most-bytes",
                "password-file", "proxy", "proxy-password-file", "proxy-username", "timeout", "url",
                "user-agent", "username"}},
          Kind{"command = \"a\"", {"command", "image", "most-bytes", "timeout", "user"}},
          Kind{"crowdsec = \"http://a\", key-file = \"/k\"",
               {"certificates", "client-certificate", "client-key", "crowdsec", "header-file", "key-file",
                "origins", "password-file", "poll", "proxy", "proxy-password-file", "proxy-username",
                "scenarios-containing", "scenarios-not-containing", "scopes", "types", "usage-metrics",
                "user-agent", "username"}}}) {
        const ReadConfiguration wrong = read(with_sources("{ " + kind.source + ", qqqqqqqqqqqq = 1 }"));
        ASSERT_EQ(wrong.mistakes.size(), 1U);
        std::string known;
        for (std::size_t i = 0; i < kind.keys.size(); i++) {
            known += (i == 0 ? "" : i + 1 == kind.keys.size() ? " or " : ", ") + kind.keys[i];
            EXPECT_NE(printed(kind.source).find(" " + kind.keys[i] + " = "), std::string::npos)
                << kind.keys[i];
        }
        EXPECT_NE(wrong.mistakes[0].message.find(known), std::string::npos) << wrong.mistakes[0].message;
    }
}

TEST(ConfigurationText, TellsWhatDecidesABuild) {
    const auto text = [](const std::string& line) { return build_text(right(in_set(line)).sets[0]); };
    const std::string plain = text("");
    EXPECT_EQ(plain, text("refresh = \"5m\""));
    EXPECT_EQ(plain, text("threads = 3"));
    EXPECT_EQ(text("kind = \"blocked\""), text("kind = \"blocked\"\nbits-per-key = 16")); // the standard
    for (const char* line :
         {"bits-per-key = 17", "fpr = 0.01", "kind = \"bloom\"", "verify = true", "key = \"dst\"",
          "skip-invalid = true", "guards.most-ipv4 = 0.1", "rounds = 3", "except = \"a\"",
          "host-bits = \"mask\"", "allow-wide = true", "guards.unchecked-images = true"})
        EXPECT_NE(plain, text(line)) << line;
}

// A list may then cover any share, unless a guard says what share.
TEST(ConfigurationReader, AWideListIsWhatTheGuardsAllow) {
    const GuardLimits standard = right(in_set("")).sets[0].guards;
    const GuardLimits wide = right(in_set("allow-wide = true")).sets[0].guards;
    EXPECT_LT(standard.most_ipv4, 1);
    EXPECT_EQ(wide.most_ipv4, 1);
    EXPECT_EQ(wide.most_ipv6, 1);
    const GuardLimits one = right(in_set("allow-wide = true\nguards.most-ipv4 = 0.5")).sets[0].guards;
    EXPECT_EQ(one.most_ipv4, 0.5);
    EXPECT_EQ(one.most_ipv6, 1);
}

// --- conf.d

ReadConfiguration read_with(const std::vector<std::string>& more) {
    std::vector<service::ConfigurationFile> files{{"/etc/s/x.toml", small()}};
    for (const std::string& text : more)
        files.push_back({fmt::format("/etc/s/conf.d/{}.toml", files.size()), text});
    return service::read_configuration(files);
}

TEST(MoreFiles, AddSetsAndBindThem) {
    const ReadConfiguration read = read_with(
        {"[[interface]]\nname = \"eth0\"\nsets = [\"more\"]\n[set.more]\nsources = [\"more.txt\"]\n",
         "[[interface]]\nname = \"eth1\"\ndefault = \"drop\"\nsets = [\"more\", \"bad\"]\n"});
    for (const Mistake& mistake : read.mistakes) ADD_FAILURE() << mistake_text("/etc/s/x.toml", mistake);
    const Configuration& all = read.configuration;
    EXPECT_EQ(all.path, "/etc/s/x.toml");
    ASSERT_EQ(all.interfaces.size(), 2U);
    EXPECT_EQ(all.interfaces[0].sets, (std::vector<std::string>{"bad", "more"}));
    EXPECT_EQ(all.interfaces[1].name, "eth1");
    EXPECT_EQ(all.interfaces[1].sets, (std::vector<std::string>{"more", "bad"}));
    ASSERT_NE(all.find_set("more"), nullptr);
    EXPECT_EQ(std::get<FileSpec>(all.find_set("more")->sources.at(0)).path, "/etc/s/conf.d/more.txt");
}

TEST(MoreFiles, ASetOfALaterFileMayBeNamedInAnEarlierOne) {
    const ReadConfiguration read =
        service::read_configuration({{"/e/x.toml", "[[interface]]\nname = \"eth0\"\nsets = [\"late\"]\n"},
                                     {"/e/conf.d/a.toml", "[set.late]\nsources = [\"late.txt\"]\n"}});
    EXPECT_TRUE(read.mistakes.empty());
}

TEST(MoreFiles, HooksAreApart) {
    const ReadConfiguration read =
        read_with({"[[interface]]\nname = \"eth0\"\nhook = \"egress\"\nsets = [\"bad\"]\n",
                   "[[interface]]\nname = \"eth0\"\nhook = \"egress\"\nsets = [\"c2\"]\n"
                   "[set.c2]\nkey = \"dst\"\nsources = [\"c2.txt\"]\n"});
    EXPECT_TRUE(read.mistakes.empty());
    ASSERT_EQ(read.configuration.interfaces.size(), 2U);
    EXPECT_EQ(read.configuration.interfaces[0].sets, (std::vector<std::string>{"bad"}));
    EXPECT_EQ(read.configuration.interfaces[1].sets, (std::vector<std::string>{"bad", "c2"}));
}

TEST(MoreFiles, ConflictsNameBothFiles) {
    const std::string bound = "[[interface]]\nname = \"eth0\"\n";
    for (const std::string& text :
         {std::string(set), bound + "default = \"drop\"\nsets = [\"more\"]\n[set.more]\nsources = [\"a\"]\n",
          bound + "sets = [\"bad\"]\n", bound + "sets = [\"mroe\"]\n[set.more]\nsources = [\"a\"]\n",
          std::string("[service]\nlisten = \"\"\n"), std::string("[set.more]\nsources = [\"a\"]\n"),
          std::string("nonsense")}) {
        const ReadConfiguration read = read_with({text});
        ASSERT_FALSE(read.mistakes.empty()) << text;
        expect_says(mistake_text("/etc/s/x.toml", read.mistakes.front()));
    }
}

TEST(MoreFiles, AreThoseOfTheFolderBesideTheFile) {
    const test::Files files;
    const std::string path =
        files.feed("x.toml", {"[[interface]]", "name = \"eth0\"", "sets = [\"a\", \"b\"]"});
    EXPECT_EQ(service::find_configuration(path)->size(), 1U);
    std::filesystem::create_directory(files.path("conf.d"));
    files.feed("conf.d/2.toml", {"[set.b]", "sources = [\"b.txt\"]"});
    files.feed("conf.d/1.toml", {"[set.a]", "sources = [\"a.txt\"]"});
    files.feed("conf.d/.1.toml.swp", {"nonsense"});
    files.feed("conf.d/.hidden.toml", {"nonsense"});
    files.feed("conf.d/1.toml~", {"nonsense"});
    const auto found = service::find_configuration(path);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), 3U);
    EXPECT_EQ((*found)[1].path, files.path("conf.d/1.toml"));
    const auto loaded = service::load_configuration(path, service::From::files);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->sets.size(), 2U);
    std::filesystem::create_directory(files.path("conf.d/3.toml"));
    expect_error(service::load_configuration(path, service::From::files), ErrorKind::bad_input);
}

TEST(ConfigurationText, IsAlsoJson) {
    const std::string json = configuration_json(right(small()));
    EXPECT_NE(json.find("\"state-directory\""), std::string::npos) << json;
    EXPECT_EQ(json.front(), '{');
}

} // namespace
} // namespace sieve::service
