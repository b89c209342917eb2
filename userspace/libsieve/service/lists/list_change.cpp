// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/list_change.hpp"

#include <algorithm>
#include <compare>

#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/service/lists/key_range_record.hpp"

namespace sieve::service {

namespace {

std::string address_text(uint128 address) {
    return format_address(static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address));
}

// As an address or a prefix where it is one.
std::string range_text(const AddressRange& range) {
    const bool ipv4 = is_ipv4(range.first);
    const int bits = ipv4 ? 32 : 128;
    const uint128 span = range.last - range.first;
    if (span == 0) return address_text(range.first);
    for (int host_bits = 1; host_bits <= bits; host_bits++) {
        const uint128 mask = host_bits == 128 ? ~uint128{0} : (uint128{1} << host_bits) - 1;
        if (span == mask && (range.first & mask) == 0)
            return address_text(range.first) + "/" + std::to_string(bits - host_bits);
    }
    return address_text(range.first) + "-" + address_text(range.last);
}

// As a feed states it.
std::string key_range_text(const KeyRange& range, std::uint32_t fields) {
    sieve_key transport{};
    transport.word[4] = range.transport;
    std::string text;
    for (const entry::FieldName& name : entry::field_names) {
        if ((fields & name.field) == 0) continue;
        if (!text.empty()) text += ' ';
        if ((range.fields & name.field) == 0)
            text += '*';
        else if (name.field == SIEVE_FIELD_SRC)
            text += range_text(range.source);
        else if (name.field == SIEVE_FIELD_DST)
            text += range_text(range.destination);
        else
            text += format_key(transport, name.field);
    }
    return text;
}

bool before_in_order(const AddressRange& a, const AddressRange& b) {
    return a.first != b.first ? a.first < b.first : a.last < b.last;
}

bool before_in_order(const KeyRange& a, const KeyRange& b) {
    return record_of(a) < record_of(b);
}

bool key_before(const sieve_key& a, const sieve_key& b) {
    return std::lexicographical_compare(std::begin(a.word), std::end(a.word), std::begin(b.word),
                                        std::end(b.word));
}

bool same_key(const sieve_key& a, const sieve_key& b) {
    return std::equal(std::begin(a.word), std::end(a.word), std::begin(b.word));
}

std::vector<sieve_key> sorted_keys(const Feed& list) {
    std::vector<sieve_key> keys;
    keys.reserve(list.keys.size());
    for (std::size_t i = 0; i < list.keys.size(); i++) keys.push_back(list.keys.at(i));
    std::sort(keys.begin(), keys.end(), key_before);
    keys.erase(std::unique(keys.begin(), keys.end(), same_key), keys.end());
    return keys;
}

template <class Range>
std::vector<Range> sorted_ranges(std::vector<Range> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return before_in_order(a, b); });
    ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
    return ranges;
}

// Counts what `a` has and `b` has not; both are in order.
template <class T, class Before, class ToText>
void count_missing(const std::vector<T>& a, const std::vector<T>& b, Before before, ToText to_text,
                   std::size_t examples, std::uint64_t& count, std::vector<std::string>& first) {
    auto other = b.begin();
    for (const T& element : a) {
        while (other != b.end() && before(*other, element)) ++other;
        if (other != b.end() && !before(element, *other)) continue;
        count++;
        if (first.size() < examples) first.push_back(to_text(element));
    }
}

} // namespace

ListChange compare_lists(const Feed& before, const Feed& now, std::size_t examples) {
    ListChange change;
    {
        const std::vector<sieve_key> old_keys = sorted_keys(before);
        const std::vector<sieve_key> new_keys = sorted_keys(now);
        const auto text = [&](const sieve_key& key) { return format_key(key, now.keys.fields()); };
        count_missing(new_keys, old_keys, key_before, text, examples, change.added, change.first_added);
        count_missing(old_keys, new_keys, key_before, text, examples, change.gone, change.first_gone);
    }
    const auto compare_ranges = [&]<class Range>(const std::vector<Range>& old_ranges,
                                                 const std::vector<Range>& new_ranges, const auto& text) {
        const auto in_order = [](const Range& a, const Range& b) { return before_in_order(a, b); };
        count_missing(new_ranges, old_ranges, in_order, text, examples, change.added, change.first_added);
        count_missing(old_ranges, new_ranges, in_order, text, examples, change.gone, change.first_gone);
    };
    compare_ranges(sorted_ranges(before.ranges), sorted_ranges(now.ranges), range_text);
    compare_ranges(sorted_ranges(before.key_ranges), sorted_ranges(now.key_ranges),
                   [&](const KeyRange& range) { return key_range_text(range, now.keys.fields()); });
    return change;
}

} // namespace sieve::service
