// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/list_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/feeds/entry.hpp"

namespace sieve::service {

namespace {

struct ListFileHeader {
    std::uint64_t magic;
    std::uint64_t fields;
    std::uint64_t keys;
    std::uint64_t ranges;
    std::uint64_t lines;
    std::uint64_t comments;
    std::uint64_t skipped;
    std::uint64_t bytes;
};

constexpr std::uint64_t list_magic = 0x31'74'73'69'6c'53'49'53; // "SISlist1"
constexpr std::size_t records_at_once = 4096;

Status write_all(int to, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(to, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0)
            return bad_input(fmt::format("the parsed list cannot be written: {}", errno_text(errno)));
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

template <class Record>
Status write_records(int to, std::size_t count, const auto& record_at) {
    static_assert(std::has_unique_object_representations_v<Record>);
    std::vector<Record> block;
    block.reserve(records_at_once);
    for (std::size_t i = 0; i < count; i++) {
        block.push_back(record_at(i));
        if (block.size() < records_at_once && i + 1 < count) continue;
        SIEVE_TRY(
            write_all(to, {reinterpret_cast<const char*>(block.data()), block.size() * sizeof(Record)}));
        block.clear();
    }
    return {};
}

Status read_all(int from, void* to, std::size_t bytes) {
    for (auto* next = static_cast<char*>(to); bytes > 0;) {
        const ssize_t got = ::read(from, next, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return bad_input("the parsed list was cut short");
        next += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return {};
}

// Until one is wrong.
template <class Record>
Status read_records(int from, std::uint64_t count, const auto& take) {
    std::vector<Record> block(static_cast<std::size_t>(std::min<std::uint64_t>(count, records_at_once)));
    while (count > 0) {
        const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(count, block.size()));
        SIEVE_TRY(read_all(from, block.data(), now * sizeof(Record)));
        for (std::size_t i = 0; i < now; i++)
            if (!take(block[i])) return bad_input("the parsed list holds an entry that is none");
        count -= now;
    }
    return {};
}

bool is_range(const AddressRange& range) {
    return range.first < range.last && is_ipv4(range.first) == is_ipv4(range.last);
}

} // namespace

Status write_list_file(const Feed& list, int to) {
    const ListFileHeader header{list_magic, list.keys.fields(), list.keys.size(), list.ranges.size(),
                                list.lines, list.comments,      list.skipped,     list.bytes};
    SIEVE_TRY(write_all(to, {reinterpret_cast<const char*>(&header), sizeof(header)}));
    SIEVE_TRY(write_records<sieve_key>(to, list.keys.size(), [&](std::size_t i) { return list.keys.at(i); }));
    return write_records<AddressRange>(to, list.ranges.size(), [&](std::size_t i) { return list.ranges[i]; });
}

Result<Feed> read_list_file(int from, std::uint32_t fields) {
    struct stat info {};
    if (::fstat(from, &info) != 0 || ::lseek(from, 0, SEEK_SET) != 0)
        return bad_input(fmt::format("the parsed list cannot be read: {}", errno_text(errno)));
    const auto size = static_cast<std::uint64_t>(info.st_size);
    ListFileHeader header{};
    SIEVE_TRY(read_all(from, &header, sizeof(header)));
    constexpr std::uint64_t most = std::uint64_t{1} << 40; // so that no sum below overflows
    if (header.magic != list_magic || header.fields != fields || header.keys > most || header.ranges > most ||
        size != sizeof(header) + header.keys * sizeof(sieve_key) + header.ranges * sizeof(AddressRange))
        return bad_input("the parsed list has a header that does not fit it");
    if (header.ranges > 0 && !entry::is_single_address(fields))
        return bad_input("the parsed list has ranges, and keys of several fields");
    Feed list(fields);
    list.keys.reserve(header.keys);
    list.ranges.reserve(header.ranges);
    list.lines = header.lines;
    list.comments = header.comments;
    list.skipped = header.skipped;
    list.bytes = header.bytes;
    SIEVE_TRY(read_records<sieve_key>(from, header.keys, [&](const sieve_key& key) {
        list.keys.add(key);
        const sieve_key kept = list.keys.at(list.keys.size() - 1);
        return std::memcmp(&kept, &key, sizeof(key)) == 0;
    }));
    SIEVE_TRY(read_records<AddressRange>(from, header.ranges, [&](const AddressRange& range) {
        list.ranges.push_back(range);
        return is_range(range);
    }));
    return list;
}

} // namespace sieve::service
