// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/origin.hpp"

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::service {
namespace {

using test::Files;

std::vector<std::string> names_of(const std::vector<SourceSpec>& sources) {
    std::vector<std::string> names;
    const std::vector<Origin> origins = origins_of(sources).value();
    for (const Origin& origin : origins)
        names.push_back(std::filesystem::path(origin_name(origin)).filename());
    return names;
}

TEST(Origins, AFileOfTwoSourcesIsThereOnce) {
    const Files files;
    files.feed("a.txt", {"192.0.2.1"});
    files.feed("b.txt", {"192.0.2.2"});
    std::filesystem::create_symlink(files.path("a.txt"), files.path("c.txt"));
    EXPECT_EQ(
        names_of({FileSpec{files.path("b.txt")}, FolderSpec{files.path("")}, GlobSpec{files.path("*.txt")}}),
        (std::vector<std::string>{"b.txt", "a.txt"}));
}

TEST(Origins, AFileThatIsNotThereStays) {
    EXPECT_EQ(names_of({FileSpec{"/nonexistent/a.txt"}, FileSpec{"/nonexistent/b.txt"}}).size(), 2U);
}

TEST(Origins, ServersAndCommandsKeepTheirLimits) {
    const auto origins = origins_of({HttpSpec{"https://h/a",
                                              {.server = {"/ca.pem"}, .proxy = {"http://proxy"}},
                                              {std::chrono::seconds(3), 4}},
                                     CommandSpec{{"make-list", "all"}, "root", {std::chrono::seconds(5), 6}},
                                     CrowdsecSpec{.url = "http://lapi"}});
    ASSERT_TRUE(origins) << origins.error().message;
    ASSERT_EQ(origins->size(), 2U);
    const auto& http = std::get<HttpOrigin>((*origins)[0]);
    EXPECT_EQ(http.access.server.certificates, "/ca.pem");
    EXPECT_EQ(http.access.proxy.url, "http://proxy");
    EXPECT_EQ(http.limits->timeout, std::chrono::seconds(3));
    const auto& command = std::get<CommandOrigin>((*origins)[1]);
    EXPECT_EQ(command.arguments.size(), 2U);
    EXPECT_EQ(command.user->uid, 0U);
    EXPECT_EQ(command.limits->most_bytes, 6U);
}

// What another user was told is no reason for a server to say that nothing is new.
TEST(Origins, AnotherUserIsAnotherOrigin) {
    const std::string plain = origin_identity(HttpOrigin{"https://h/a"});
    EXPECT_EQ(plain, "https://h/a");
    std::set<std::string> identities{plain};
    for (const HttpAccess& access :
         {HttpAccess{.server = {.client_certificate = "/c"}}, HttpAccess{.header_file = "/h"},
          HttpAccess{.username = "u", .password_file = "/p"},
          HttpAccess{.username = "v", .password_file = "/p"}})
        identities.insert(origin_identity(HttpOrigin{"https://h/a", access}));
    EXPECT_EQ(identities.size(), 5U);
    EXPECT_EQ(origin_identity(HttpOrigin{"https://h/a", {.proxy = {"http://p"}, .user_agent = "x"}}), plain);
}

// A file server that is gone blocks whoever looks at a file.
TEST(Origins, AFileIsKnownByItsPathAlone) {
    const Files files;
    files.feed("a.txt", {"192.0.2.1"});
    std::filesystem::create_symlink(files.path("a.txt"), files.path("b.txt"));
    const std::set<std::string> both{files.path("a.txt"), files.path("b.txt")};
    EXPECT_EQ(source_identities({FileSpec{files.path("a.txt")}, FileSpec{files.path("b.txt")}}).known, both);
}

TEST(Origins, WhatCannotBeListedMayHaveWhatItHad) {
    const SourceIdentities all = source_identities(
        {FileSpec{"/x/a.txt"}, FolderSpec{"/nonexistent/lists/"}, GlobSpec{"/nonexistent/[ab]*/*.txt"},
         CommandSpec{{"true"}, "no-such-user-here", {}}, BanSpec{}});
    EXPECT_EQ(all.known,
              (std::set<std::string>{"/x/a.txt", origin_identity(CommandOrigin{{"true"}}), "bans"}));
    EXPECT_EQ(all.unlisted.size(), 2U);
    for (const char* has : {"/x/a.txt", "bans", "/nonexistent/lists/a", "/nonexistent/b7/a.txt"})
        EXPECT_TRUE(all.may_have(has)) << has;
    for (const char* has_not : {"/x/b.txt", "/nonexistent/lists/a/b", "/nonexistent/c/a.txt",
                                "/nonexistent/b7/a", "/nonexistent/b7/c/a.txt", "http://h/a"})
        EXPECT_FALSE(all.may_have(has_not)) << has_not;
    std::set<std::string> then = all.known;
    EXPECT_FALSE(all.may_be(then)) << "there may have been no folder yet";
    then.insert({"/nonexistent/lists/a", "/nonexistent/lists/b", "/nonexistent/a/a.txt"});
    EXPECT_TRUE(all.may_be(then));
    then.insert("/x/b.txt");
    EXPECT_FALSE(all.may_be(then));
}

TEST(Origins, WhatIsGoneOrHasAnotherNameNeedsNoAnswer) {
    test::Files files;
    for (const char* folder : {"lists", "none"}) std::filesystem::create_directory(files.path(folder));
    files.feed("lists/2024.txt", {"192.0.2.1"});
    std::filesystem::create_symlink("2024.txt", files.path("lists/current.txt"));
    const SourceIdentities all =
        source_identities({FolderSpec{files.path("lists/")}, FolderSpec{files.path("none/")}});
    EXPECT_EQ(all.known, std::set<std::string>{files.path("lists/2024.txt")});
    for (const char* one : {"lists/current.txt", "none/gone.txt"}) {
        EXPECT_TRUE(all.may_have(files.path(one))) << one;
        EXPECT_TRUE(all.needs_no_answer(files.path(one))) << one;
    }
    EXPECT_FALSE(all.may_have(files.path("lists/gone.txt")));
    EXPECT_FALSE(all.needs_no_answer(files.path("lists/2024.txt")));
}

TEST(Origins, AnUnknownUserIsAnError) {
    expect_error(origins_of({CommandSpec{{"true"}, "no-such-user-here", {}}}), ErrorKind::bad_input);
}

} // namespace
} // namespace sieve::service
