// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/fetch_decisions.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "libsieve/service/lists/decision_file.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using test::entry;
using Fetch = SourceSchedule::Fetch;

TEST(StreamUrl, AsksForEveryDecisionOfTheChosenSorts) {
    CrowdsecSpec source;
    source.url = "http://127.0.0.1:8080/";
    EXPECT_EQ(stream_url(source, Fetch::whole_list),
              "http://127.0.0.1:8080/v1/decisions/stream?startup=true&dedup=false&scopes=Ip,Range");
    source.scopes = {"Ip"};
    source.origins = {"cscli", "a b&c"};
    source.scenarios_containing = {"ssh", "http"};
    source.scenarios_not_containing = {"crowdsecurity/http-probing"};
    EXPECT_EQ(stream_url(source, Fetch::difference),
              "http://127.0.0.1:8080/v1/decisions/"
              "stream?startup=false&dedup=false&scopes=Ip&origins=cscli,a%20b%26c"
              "&scenarios_containing=ssh,http&scenarios_not_containing=crowdsecurity%2Fhttp%2Dprobing");
}

class DecisionFile : public testing::Test {
  protected:
    static std::string content_of(const Decisions& decisions) {
        const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
        EXPECT_TRUE(write_decision_file(decisions, file.get()));
        std::string text(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
        EXPECT_EQ(::pread(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
        return text;
    }
    static Result<Decisions> read(const std::string& content) {
        const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
        EXPECT_EQ(::write(file.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
        return read_decision_file(file.get());
    }
    const Decisions decisions{.added = {entry("192.0.2.1", 1, test::at_second(5)), entry("192.0.2.0/24", 2)},
                              .deleted = {entry("2001:db8::1", 3)},
                              .origins = {"CAPI", "lists:tor"},
                              .ignored = 4,
                              .first_ignored = "scope Country",
                              .unusable = 5,
                              .first_unusable = "decision 7: \"x\" is no address"};
};

TEST_F(DecisionFile, ComesBackAsItWas) {
    const auto back = read(content_of(decisions));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->added, decisions.added);
    EXPECT_EQ(back->deleted, decisions.deleted);
    EXPECT_EQ(back->origins, decisions.origins);
    EXPECT_EQ(back->ignored, 4U);
    EXPECT_EQ(back->first_ignored, "scope Country");
    EXPECT_EQ(back->unusable, 5U);
    EXPECT_EQ(back->first_unusable, decisions.first_unusable);
}

// A child that was taken over may write anything.
TEST_F(DecisionFile, WhatIsNoneIsRefused) {
    const std::string whole = content_of(decisions);
    for (std::size_t length = 0; length < whole.size(); length++)
        EXPECT_FALSE(read(whole.substr(0, length))) << length;
    EXPECT_FALSE(read(whole + "x"));
    const auto with = [&](std::size_t offset, std::uint64_t number) {
        std::string other = whole;
        other.replace(offset, sizeof(number), reinterpret_cast<const char*>(&number), sizeof(number));
        return read(other);
    };
    EXPECT_FALSE(with(8, 4));                 // more timed entries than there are
    EXPECT_FALSE(with(8, ~std::uint64_t{0})); // so many that their bytes overflow
    EXPECT_FALSE(with(16, 2));
    const std::size_t first = whole.size() - 3 * 40;
    EXPECT_FALSE(with(first + 32, 0)); // an impossible length
    EXPECT_FALSE(with(first + 32, 129));
    EXPECT_FALSE(with(first + 32, 64)); // bits beyond it
    EXPECT_TRUE(with(first + 16, 99));
}

} // namespace
} // namespace sieve::service::live
