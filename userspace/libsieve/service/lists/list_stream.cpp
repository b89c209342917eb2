// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/list_stream.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include <sieve/prefix.h>

#include "libsieve/service/lists/key_range_record.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

enum Kind : std::uint32_t {
    addresses = 1, // IPv4 addresses of 4 bytes
    words,         // keys as KeySet::words() has them
    ranges,        // of addresses
    key_ranges,
    decided, // the rest is text: one line of Feed::decided,
    skipped, // of Feed::skipped_first,
    place,   // of FoundList::places
};

struct Head {
    std::uint32_t kind;
    std::uint32_t bytes;
};

// A receiver takes no longer pieces.
constexpr std::size_t longest_piece = std::size_t{1} << 20;
constexpr std::size_t longest_text = 2000;
// More files than these say nothing about how they were read.
constexpr std::size_t most_decided = std::size_t{1} << 20;

// The bytes as records, which need not lie where records may.
template <class Record>
std::span<const Record> records_of(std::string_view bytes, std::vector<Record>& room) {
    room.resize(bytes.size() / sizeof(Record));
    std::memcpy(room.data(), bytes.data(), bytes.size());
    return room;
}

} // namespace

Status ListSender::send(std::uint32_t kind, std::string_view bytes) const {
    const Head head{kind, static_cast<std::uint32_t>(bytes.size())};
    SIEVE_TRY(write_all(to_, {reinterpret_cast<const char*>(&head), sizeof(head)}));
    return write_all(to_, bytes);
}

// `each` records belong together.
template <class Record>
Status ListSender::send_records(std::uint32_t kind, const Record* records, std::size_t count,
                                std::size_t each) const {
    const std::size_t most = longest_piece / (sizeof(Record) * each) * each;
    for (std::size_t i = 0; i < count; i += most)
        SIEVE_TRY(send(
            kind, {reinterpret_cast<const char*>(records + i), std::min(most, count - i) * sizeof(Record)}));
    return {};
}

Status ListSender::send_keys(const KeySet& keys) const {
    SIEVE_TRY(send_records(addresses, keys.addresses().data(), keys.addresses().size(), 1));
    return send_records(words, keys.words().data(), keys.words().size(), keys.stride());
}

Status ListSender::send_rest(const FoundList& list) const {
    const Feed& feed = list.feed;
    SIEVE_TRY(send_records(ranges, feed.ranges.data(), feed.ranges.size(), 1));
    std::vector<KeyRangeRecord> records;
    records.reserve(feed.key_ranges.size());
    for (const KeyRange& range : feed.key_ranges) records.push_back(record_of(range));
    SIEVE_TRY(send_records(key_ranges, records.data(), records.size(), 1));
    for (const std::string& text : feed.decided) SIEVE_TRY(send(decided, text));
    for (const std::string& text : feed.skipped_first) SIEVE_TRY(send(skipped, text));
    for (const std::string& text : list.places) SIEVE_TRY(send(place, text));
    return {};
}

bool ListReceiver::take(std::string_view bytes) {
    const auto move = [&bytes](std::string& to, std::size_t size) {
        const std::size_t some = std::min(size - to.size(), bytes.size());
        to.append(bytes.substr(0, some));
        bytes.remove_prefix(some);
        return to.size() == size;
    };
    while (!bytes.empty()) {
        if (head_.size() < sizeof(Head)) {
            if (!move(head_, sizeof(Head))) return true;
            Head head{};
            std::memcpy(&head, head_.data(), sizeof(head));
            if (head.bytes > longest_piece) return false;
            kind_ = head.kind;
            bytes_ = head.bytes;
        }
        if (!move(piece_, bytes_)) return true;
        if (!take_piece()) return false;
        head_.clear();
        piece_.clear();
    }
    return true;
}

bool ListReceiver::take_piece() {
    switch (kind_) {
    case addresses:
        return take_addresses();
    case words:
        return take_words();
    case ranges:
    case key_ranges:
        return take_ranges();
    case decided:
        return take_text(list_.feed.decided, most_decided);
    case skipped:
        return take_text(list_.feed.skipped_first, most_skipped_);
    case place:
        return take_text(list_.places, most_places_);
    default:
        return false;
    }
}

bool ListReceiver::take_addresses() {
    KeySet& keys = list_.feed.keys;
    if (!sieve_is_one_address(keys.fields()) || bytes_ % sizeof(std::uint32_t) != 0) return false;
    keys.append_addresses(records_of(piece_, addresses_));
    return true;
}

// Any address is one, so only the last word of a key can say what it may not.
bool ListReceiver::take_words() {
    KeySet& keys = list_.feed.keys;
    const std::size_t stride = keys.stride();
    if (bytes_ % (stride * sizeof(std::uint64_t)) != 0) return false;
    const std::span<const std::uint64_t> all = records_of(piece_, words_);
    if ((keys.fields() & SIEVE_FIELD_TRANSPORT) != 0)
        for (std::size_t i = stride - 1; i < all.size(); i += stride)
            if ((all[i] & ~sieve_transport_mask(keys.fields())) != 0) return false;
    keys.append_words(all);
    return true;
}

bool ListReceiver::take_ranges() {
    Feed& feed = list_.feed;
    const bool single = sieve_is_one_address(feed.keys.fields());
    const std::size_t each = single ? address_range_words : key_range_words;
    if (single != (kind_ == ranges) || bytes_ % (each * sizeof(std::uint64_t)) != 0) return false;
    const std::span<const std::uint64_t> all = records_of(piece_, words_);
    for (std::size_t i = 0; i < all.size(); i += each) {
        if (single) {
            const auto range =
                address_range_of(std::span<const std::uint64_t, address_range_words>(&all[i], each));
            if (!range) return false;
            feed.ranges.push_back(*range);
        } else {
            const auto range = key_range_of(std::span<const std::uint64_t, key_range_words>(&all[i], each),
                                            feed.keys.fields());
            if (!range) return false;
            feed.key_ranges.push_back(*range);
        }
    }
    return true;
}

bool ListReceiver::take_text(std::vector<std::string>& to, std::size_t most) {
    if (to.size() >= most) return false;
    to.push_back(printable(piece_, longest_text));
    return true;
}

} // namespace sieve::service
