// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/registry.hpp"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "unit/messages.hpp"

namespace sieve {
namespace {

std::string file(const std::string& path) {
    std::ifstream stream(path);
    EXPECT_TRUE(stream) << path;
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
}

/// The text between the first `from` and the next `to`.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
    const std::size_t begin = text.find(from);
    if (begin == std::string::npos) return {};
    return text.substr(begin, text.find(to, begin) - begin);
}

/// The texts that the expression's group matches.
std::vector<std::string> matches(const std::string& text, const std::string& expression) {
    const std::regex pattern(expression);
    std::vector<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
        found.push_back((*at)[1]);
    return found;
}

std::set<std::string> names() {
    std::set<std::string> all;
    for (const FilterKind* kind : filter_kinds()) all.insert(kind->facts().name);
    return all;
}

TEST(Registry, HasEveryKindOfTheImageFormatUnderItsNumberAndName) {
    std::size_t count = 0;
#define SIEVE_KIND_CHECK(UPPER, lower, value)                                                                \
    EXPECT_EQ(kind_of(SIEVE_KIND_##UPPER).facts().number, SIEVE_KIND_##UPPER);                               \
    EXPECT_STREQ(kind_name(SIEVE_KIND_##UPPER), #lower);                                                     \
    EXPECT_EQ(parse_kind(#lower).value_or(SIEVE_KIND_NONE), SIEVE_KIND_##UPPER);                             \
    count++;
    SIEVE_KINDS(SIEVE_KIND_CHECK)
#undef SIEVE_KIND_CHECK
    EXPECT_EQ(filter_kinds().size(), count);
    EXPECT_EQ(names().size(), count) << "two kinds of one name";
}

TEST(Registry, KnowsNothingOfOtherNumbersAndNames) {
    sieve_lookup lookup{};
    lookup.fields = SIEVE_FIELD_SRC;
    lookup.buckets = 1;
    for (const std::uint32_t number : {0U, 100U, 255U, 256U, ~0U}) {
        lookup.kind = static_cast<__u8>(number);
        EXPECT_STREQ(kind_name(number), "unknown");
        EXPECT_NE(geometry_fault(lookup), number == 256 ? "" : "no fault");
        EXPECT_FALSE(kind_of(number).builder({}));
    }
    const auto wrong = parse_kind("cuckoo");
    ASSERT_FALSE(wrong);
    expect_error(wrong, ErrorKind::invalid_request);
    for (const std::string& name : names())
        EXPECT_NE(wrong.error().message.find(name), std::string::npos) << wrong.error().message;
}

/// Facts that contradict each other or the kind's behaviour.
TEST(Registry, FactsAreTrue) {
    for (const FilterKind* kind : hashing_kinds()) {
        const KindFacts& facts = kind->facts();
        SCOPED_TRACE(facts.name);
        EXPECT_LE(facts.choices.least, facts.choices.standard);
        EXPECT_LE(facts.choices.standard, facts.choices.most);
        EXPECT_LE(facts.least_bits_per_key, facts.bits_per_key);
        EXPECT_FALSE(kind->forms().empty());
        for (const KindOptions& form : kind->forms()) {
            EXPECT_EQ(form.kind, facts.number);
            const auto builder = kind_builder(form);
            ASSERT_TRUE(builder) << builder.error().message;
            sieve_lookup lookup{};
            lookup.fields = SIEVE_FIELD_SRC;
            const std::uint64_t lines = (*builder)->lines_for_bits(10'000, facts.bits_per_key);
            EXPECT_EQ((*builder)->usable_lines(lines), lines);
            ASSERT_TRUE((*builder)->describe(10'000, lines, lookup));
            EXPECT_EQ(geometry_fault(lookup), "");
            lookup.probes = 2; // every kind holds prefixes
            EXPECT_EQ(geometry_fault(lookup), "");
            EXPECT_EQ(kind->lines(lookup), lines);
            EXPECT_EQ((*builder)->model_fpr(10'000, lookup).has_value(), facts.model[0] != '\0');
            std::vector<sieve_line> filter(lines);
            EXPECT_EQ(kind->open_for_change(lookup, filter).has_value(), facts.changes_live);
        }
        EXPECT_EQ(kind->rounds(Effort::fast, 2), 0U);
        EXPECT_LE(kind->rounds(Effort::normal, 2), kind->rounds(Effort::best, 2));
    }
}

/// Man page, docs/sets.md and registry name the same kinds.
TEST(Registry, IsWhatTheDocumentsSay) {
    const std::string page = file("docs/xdp-sieve.8");
    const std::string list = between(page, ".It Fl -kind Ar kind", ".El");
    std::set<std::string> listed;
    for (const std::string& kinds : matches(list, R"(\.It Cm ([^\n]+))"))
        for (const std::string& name : matches(kinds, "([a-z0-9]+)")) listed.insert(name);
    EXPECT_EQ(listed, names());

    const std::string sets = between(file("docs/sets.md"), "## Kinds of filter", "\n\n    ");
    std::set<std::string> read;
    for (const std::string& name : matches(sets, "`([a-z0-9]+)`"))
        if (names().contains(name)) read.insert(name);
    EXPECT_EQ(read, names());

    const std::string sizes = between(page, ".It Fl -bits-per-key Ar bits", "\n.It");
    for (const FilterKind* kind : hashing_kinds())
        EXPECT_NE(sizes.find(fmt::format("{}", kind->facts().bits_per_key)), std::string::npos)
            << kind->facts().name;

    const std::string numbers = between(page, ".It Fl -choices Ar number", "\n.It");
    for (const FilterKind* kind : hashing_kinds()) {
        const KindFacts& facts = kind->facts();
        const std::string range = fmt::format("{} to {} with\n", facts.choices.least, facts.choices.most);
        const std::size_t at = numbers.find(range);
        ASSERT_NE(at, std::string::npos) << facts.name;
        const std::size_t end = numbers.find(" to ", at + range.size());
        EXPECT_NE(numbers.substr(at, end - at).find(facts.name), std::string::npos) << facts.name;
    }
}

} // namespace
} // namespace sieve
