// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/key_changes.hpp"

#include <bit>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/filters/kinds/ddlcbf/ddlcbf_filter.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

KeySet addresses(std::uint32_t first, std::uint32_t count) {
    KeySet keys(SIEVE_FIELD_SRC);
    for (std::uint32_t i = 0; i < count; i++) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(first + i);
        keys.add(key);
    }
    return keys;
}

struct Filter {
    sieve_lookup lookup{};
    sieve_file file{};
    std::vector<sieve_line> lines;

    explicit Filter(std::uint32_t lines_a_subtable) {
        store_shape({}, lookup);
        lookup.buckets = lines_a_subtable;
        lookup.fields = SIEVE_FIELD_SRC;
        for (std::uint64_t i = 0; auto& word : lookup.hash_key) word = sieve_mix(++i);
        lines.resize(std::size_t{lookup.choices} * lines_a_subtable);
    }
    KeyChangeReport change(const KeySet& keys, KeyChange what) {
        const auto report = change_keys(lookup, file, lines, keys, what, {});
        if (!report) throw std::runtime_error(report.error().message);
        return *report;
    }
    [[nodiscard]] std::size_t holds(const KeySet& keys) {
        const DdlcbfFilter filter = *DdlcbfFilter::open(lookup, lines);
        std::size_t held = 0;
        for (std::size_t i = 0; i < keys.size(); i++) {
            const sieve_key key = keys.at(i);
            held += filter.contains(sieve_hash_key(&key, lookup.hash_key, lookup.fields)) ? 1 : 0;
        }
        return held;
    }
};

// Memory runs out after the first 4,096 keys. The error says that something was changed, and the header says
// what.
TEST(KeyChanges, AreToldWhenNotAllAreMade) {
    Filter filter(1024);
    const KeySet keys = addresses(0x0a000000, 5000);
    const auto ends_at = [](double share) {
        return [share](std::string_view, double at) {
            if (at >= share) throw std::bad_alloc();
        };
    };
    const auto half =
        change_keys(filter.lookup, filter.file, filter.lines, keys, KeyChange::insert, ends_at(0.5));
    expect_error(half, ErrorKind::unfinished);
    EXPECT_EQ(filter.file.keys, 4096U);
    EXPECT_GT(std::bit_cast<double>(filter.file.expected_fpr), 0);
    const auto nothing =
        change_keys(filter.lookup, filter.file, filter.lines, keys, KeyChange::erase, ends_at(0));
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().kind, ErrorKind::out_of_memory);
    EXPECT_EQ(filter.file.keys, 4096U);
}

TEST(KeyChanges, KeepTheHeaderTrue) {
    Filter filter(64);
    auto report = filter.change(addresses(0x0a000000, 500), KeyChange::insert);
    EXPECT_EQ(report.done, 500U);
    EXPECT_EQ(filter.file.keys, 500U);
    EXPECT_EQ(filter.file.changes, 500U);
    EXPECT_EQ(std::bit_cast<double>(filter.file.expected_fpr), report.expected_fpr);
    EXPECT_EQ(report.expected_fpr, DdlcbfFilter::open(filter.lookup, filter.lines)->expected_fpr());
    report = filter.change(addresses(0x0a000000, 200), KeyChange::erase);
    EXPECT_EQ(report.done, 200U);
    EXPECT_EQ(filter.file.keys, 300U);
    EXPECT_EQ(filter.file.changes, 700U);
    EXPECT_EQ(filter.holds(addresses(0x0a0000c8, 300)), 300U);
    EXPECT_EQ(DdlcbfFilter::open(filter.lookup, filter.lines)->fill().keys, 300U);
}

TEST(KeyChanges, TellWhatCanBeTold) {
    Filter filter(64);
    KeySet twice = addresses(0x0a000000, 10);
    twice.append(addresses(0x0a000000, 10));
    auto report = filter.change(twice, KeyChange::insert);
    EXPECT_EQ(report.done, 10U);
    EXPECT_EQ(report.repeated, 10U);
    report = filter.change(addresses(0x0a000005, 10), KeyChange::insert);
    EXPECT_EQ(report.done, 5U);
    EXPECT_EQ(report.told.size(), 5U);
    const auto before = filter.lines;
    report = filter.change(addresses(0x0b000000, 3), KeyChange::erase);
    EXPECT_EQ(report.done, 0U);
    EXPECT_EQ(report.told.size(), 3U);
    EXPECT_EQ(std::memcmp(before.data(), filter.lines.data(), before.size() * sizeof(sieve_line)), 0);
    // Deleted as often as inserted.
    EXPECT_EQ(filter.change(addresses(0x0a000000, 1), KeyChange::insert_again).done, 1U);
    filter.change(addresses(0x0a000000, 1), KeyChange::erase);
    EXPECT_EQ(filter.holds(addresses(0x0a000000, 1)), 1U);
    filter.change(addresses(0x0a000000, 1), KeyChange::erase);
    EXPECT_EQ(filter.holds(addresses(0x0a000000, 1)), 0U);
}

TEST(KeyChanges, WhatDoesNotFitChangesNothing) {
    Filter filter(1);
    const KeySet many = addresses(0x0a000000, 2'000);
    const auto report = filter.change(many, KeyChange::insert_again);
    EXPECT_GT(report.full.size(), 0U);
    EXPECT_EQ(report.done + report.full.size(), 2'000U);
    EXPECT_EQ(filter.file.keys, report.done);
    EXPECT_EQ(DdlcbfFilter::open(filter.lookup, filter.lines)->fill().keys, report.done);
    EXPECT_GE(filter.holds(many), report.done);
}

TEST(KeyChanges, OnlyInCountingFilters) {
    Filter filter(1);
    filter.lookup.kind = SIEVE_KIND_BLOCKED;
    EXPECT_FALSE(
        change_keys(filter.lookup, filter.file, filter.lines, addresses(1, 1), KeyChange::insert, {}));
}

} // namespace
} // namespace sieve
