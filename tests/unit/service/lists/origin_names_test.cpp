// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/origin_names.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using test::entry;

TEST(OriginNames, GiveANameTheSameCodeInEveryProcess) {
    OriginNames one, other;
    const std::uint8_t code = one.code_of("CAPI");
    EXPECT_NE(code, 0);
    EXPECT_EQ(one.code_of("CAPI"), code);
    EXPECT_EQ(one.name_of(code), "CAPI");
    (void)other.code_of("crowdsec");
    EXPECT_EQ(other.code_of("CAPI"), code);
    EXPECT_EQ(one.code_of(""), 0);
}

TEST(OriginNames, TellAsManyApartAsThereAreCodes) {
    OriginNames names;
    std::set<int> codes;
    for (std::size_t i = 0; i < most_origins; i++) codes.insert(names.code_of("lists:" + std::to_string(i)));
    EXPECT_EQ(codes.size(), most_origins);
    EXPECT_FALSE(codes.contains(0));
    EXPECT_EQ(names.code_of("one more"), 0);
    EXPECT_EQ(names.name_of(names.code_of("lists:7")), "lists:7");
}

TEST(OriginNames, RenumberAnAnswer) {
    OriginNames names;
    Decisions answer{.added = {entry("192.0.2.1", entry_id(5, 2)), entry("192.0.2.2", entry_id(6, 0))},
                     .deleted = {entry("192.0.2.3", entry_id(7, 1)), entry("192.0.2.4", entry_id(8, 3))},
                     .origins = {"CAPI", "cscli"}};
    names.number(answer);
    EXPECT_EQ(answer.added[0].id, entry_id(5, names.code_of("cscli")));
    EXPECT_EQ(answer.added[1].id, entry_id(6, 0));
    EXPECT_EQ(answer.deleted[0].id, entry_id(7, names.code_of("CAPI")));
    EXPECT_EQ(answer.deleted[1].id, entry_id(8, 0)); // a child that says so is not believed
}

} // namespace
} // namespace sieve::service::live
