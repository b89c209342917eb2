// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/list_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/service/lists/key_range_record.hpp"
#include "libsieve/util/system/read_whole.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::service {

namespace {

struct ListFileHeader {
    std::uint64_t magic;
    std::uint64_t fields;
    std::uint64_t keys;
    std::uint64_t ranges; // of addresses, or of keys: a list has one sort
    std::uint64_t lines;
    std::uint64_t comments;
    std::uint64_t skipped;
    std::uint64_t bytes;
};

constexpr std::uint64_t list_magic = 0x32'74'73'69'6c'53'49'53; // "SISlist2"
constexpr std::size_t records_at_once = 4096;

// The words of a key that selected fields lie in, in rising order.
std::vector<std::size_t> words_of(std::uint32_t fields) {
    sieve_key all;
    std::fill(std::begin(all.word), std::end(all.word), ~std::uint64_t{0});
    KeySet one(fields);
    one.add(all);
    const sieve_key selected = one.at(0);
    std::vector<std::size_t> words;
    for (std::size_t i = 0; i < std::size(selected.word); i++)
        if (selected.word[i] != 0) words.push_back(i);
    return words;
}

Status write_keys(int to, const KeySet& keys) {
    const std::vector<std::size_t> words = words_of(keys.fields());
    std::vector<std::uint64_t> block;
    block.reserve(records_at_once * words.size());
    for (std::size_t i = 0; i < keys.size(); i++) {
        const sieve_key key = keys.at(i);
        for (const std::size_t word : words) block.push_back(key.word[word]);
        if ((i + 1) % records_at_once != 0 && i + 1 < keys.size()) continue;
        SIEVE_TRY(write_all(
            to, {reinterpret_cast<const char*>(block.data()), block.size() * sizeof(std::uint64_t)}));
        block.clear();
    }
    return {};
}

Status read_all(int from, void* to, std::size_t bytes) {
    if (!read_whole(from, to, bytes)) return bad_input("the parsed list was cut short");
    return {};
}

template <class Record>
std::string_view bytes_of(const std::vector<Record>& records) {
    return {reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record)};
}

// Reads `count` records of so many words, and hands each on until one is wrong.
Status read_records(int from, std::uint64_t count, std::size_t words, const auto& take) {
    const std::uint64_t most = std::min<std::uint64_t>(count, records_at_once);
    std::vector<std::uint64_t> block(static_cast<std::size_t>(most) * words);
    while (count > 0) {
        const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(count, records_at_once));
        SIEVE_TRY(read_all(from, block.data(), now * words * sizeof(std::uint64_t)));
        for (std::size_t i = 0; i < now; i++)
            if (!take(&block[i * words])) return bad_input("the parsed list holds an entry that is none");
        count -= now;
    }
    return {};
}

} // namespace

Status write_list_file(const Feed& list, int to) {
    const ListFileHeader header{
        list_magic, list.keys.fields(), list.keys.size(), list.ranges.size() + list.key_ranges.size(),
        list.lines, list.comments,      list.skipped,     list.bytes};
    SIEVE_TRY(write_all(to, {reinterpret_cast<const char*>(&header), sizeof(header)}));
    SIEVE_TRY(write_keys(to, list.keys));
    SIEVE_TRY(write_all(to, bytes_of(list.ranges)));
    std::vector<KeyRangeRecord> records;
    records.reserve(list.key_ranges.size());
    for (const KeyRange& range : list.key_ranges) records.push_back(record_of(range));
    return write_all(to, bytes_of(records));
}

Result<Feed> read_list_file(int from, std::uint32_t fields) {
    struct stat info {};
    if (::fstat(from, &info) != 0 || ::lseek(from, 0, SEEK_SET) != 0)
        return bad_input(fmt::format("the parsed list cannot be read: {}", errno_text(errno)));
    const auto size = static_cast<std::uint64_t>(info.st_size);
    ListFileHeader header{};
    SIEVE_TRY(read_all(from, &header, sizeof(header)));
    const std::vector<std::size_t> words = words_of(fields);
    const bool single = entry::is_single_address(fields);
    const std::size_t range_words = single ? address_range_words : key_range_words;
    constexpr std::uint64_t most = std::uint64_t{1} << 40; // so that no sum below overflows
    if (header.magic != list_magic || header.fields != fields || header.keys > most || header.ranges > most ||
        size != sizeof(header) +
                    (header.keys * words.size() + header.ranges * range_words) * sizeof(std::uint64_t))
        return bad_input("the parsed list has a header that does not fit it");
    Feed list(fields);
    list.keys.reserve(header.keys);
    list.lines = header.lines;
    list.comments = header.comments;
    list.skipped = header.skipped;
    list.bytes = header.bytes;
    SIEVE_TRY(read_records(from, header.keys, words.size(), [&](const std::uint64_t* record) {
        sieve_key key{};
        for (std::size_t i = 0; i < words.size(); i++) key.word[words[i]] = record[i];
        list.keys.add(key);
        const sieve_key kept = list.keys.at(list.keys.size() - 1);
        return std::memcmp(&kept, &key, sizeof(key)) == 0;
    }));
    if (!single) {
        list.key_ranges.reserve(header.ranges);
        SIEVE_TRY(read_records(from, header.ranges, range_words, [&](const std::uint64_t* record) {
            const std::optional<KeyRange> range = key_range_of(
                std::span<const std::uint64_t, key_range_words>(record, key_range_words), fields);
            if (range) list.key_ranges.push_back(*range);
            return range.has_value();
        }));
        return list;
    }
    list.ranges.reserve(header.ranges);
    SIEVE_TRY(read_records(from, header.ranges, range_words, [&](const std::uint64_t* record) {
        const std::optional<AddressRange> range = address_range_of(
            std::span<const std::uint64_t, address_range_words>(record, address_range_words));
        if (range) list.ranges.push_back(*range);
        return range.has_value();
    }));
    return list;
}

} // namespace sieve::service
