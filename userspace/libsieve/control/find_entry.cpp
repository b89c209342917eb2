// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/find_entry.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include <sieve/prefix.h>

#include "libsieve/feeds/entry.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/input.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::control {

namespace {

bool same_key(const sieve_key& a, const sieve_key& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

uint128 address_of(const sieve_key& key, std::uint32_t fields) {
    const int word = sieve_address_word(fields);
    return address_number(key.word[word], key.word[word + 1]);
}

bool covers(const AddressRange& range, const sieve_key& key, std::uint32_t fields) {
    const uint128 address = address_of(key, fields);
    return range.first <= address && address <= range.last;
}

// The line of a plain feed; 0 if no line is the key or covers it.
std::uint64_t line_of(const std::string& path, std::uint32_t fields, const sieve_key& key) {
    std::ifstream file(path, std::ios::binary);
    std::uint64_t number = 0;
    for (std::string line; std::getline(file, line);) {
        number++;
        const char* at = line.data();
        const char* const end = at + line.size();
        while (at != end && entry::is_separator(*at)) at++;
        if (at == end || entry::is_comment(*at)) continue;
        sieve_key found{};
        entry::Fault fault;
        if (entry::parse_entry(at, end, fields, found, fault)) {
            if (same_key(found, key)) return number;
        } else if (entry::is_range(fault) && covers(entry::range_of(found, fields, fault), key, fields)) {
            return number;
        }
    }
    return 0;
}

// Whether the feed, in whatever format, has the key.
bool lists(const std::string& path, const FeedSpec& spec, const sieve_key& key) {
    const auto feed = read_feed({path}, spec.fields,
                                {.format = spec.format,
                                 .skip_invalid = spec.skip_invalid,
                                 .ranges = entry::is_single_address(spec.fields)});
    if (!feed) return false;
    for (std::size_t i = 0; i < feed->keys.size(); i++)
        if (same_key(feed->keys.at(i), key)) return true;
    return std::any_of(feed->ranges.begin(), feed->ranges.end(),
                       [&](const AddressRange& range) { return covers(range, key, spec.fields); });
}

bool can_be_read_again(const std::string& path) {
    auto input = Input::of_all({path});
    if (!input || input->front().is_stream()) return false;
    const auto head = input->front().peek(sizeof(std::uint32_t));
    std::uint32_t magic = 0;
    if (!head || head->size() < sizeof(magic)) return head.has_value();
    std::memcpy(&magic, head->data(), sizeof(magic));
    return magic != SIEVE_MAGIC;
}

} // namespace

bool can_find_entries(const SetSpec& set) {
    return !set.sources.empty() && std::all_of(set.sources.begin(), set.sources.end(), can_be_read_again);
}

std::optional<FoundEntry> find_entry(const SetSpec& set, const sieve_key& key) {
    for (const std::string& path : set.sources) {
        if (!can_be_read_again(path)) continue;
        if (const std::uint64_t line = line_of(path, set.feed.fields, key); line != 0)
            return FoundEntry{printable(path), line};
        if (lists(path, set.feed, key)) return FoundEntry{printable(path), 0};
    }
    return std::nullopt;
}

} // namespace sieve::control
