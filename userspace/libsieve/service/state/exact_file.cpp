// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/exact_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/system/read_whole.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::service {

namespace {

struct ExactFileHeader {
    std::uint64_t magic;
    std::uint64_t keys;
    char digest[32]; // of the keys (util/files/digest.hpp)
};

constexpr std::uint64_t exact_magic = 0x31'74'63'61'78'45'53'49; // "ISExact1"
constexpr std::size_t keys_at_once = 16384;

std::string_view bytes_of(std::span<const sieve_key> keys) {
    return {reinterpret_cast<const char*>(keys.data()), keys.size_bytes()};
}

tl::unexpected<Error> damaged() {
    return bad_input("the keys for verification are damaged: their checksum is another one");
}

// Leaves the descriptor at the first key.
Result<ExactFileHeader> read_header(int from) {
    struct stat info {};
    if (::fstat(from, &info) != 0 || ::lseek(from, 0, SEEK_SET) != 0) return bad_input(errno_text(errno));
    ExactFileHeader header{};
    if (!read_whole(from, &header, sizeof(header)) || header.magic != exact_magic)
        return bad_input("the keys for verification do not begin as such a file does");
    const std::uint64_t bytes = static_cast<std::uint64_t>(info.st_size) - sizeof(header);
    if (bytes % sizeof(sieve_key) != 0 || bytes / sizeof(sieve_key) != header.keys)
        return bad_input("the keys for verification were cut short");
    return header;
}

// A prefix set that changes while it is in force also lists its entries, and several of them may share a
// stored key (sieve/exact.h).
bool are_as_many(std::span<const sieve_key> keys, const Image& image) {
    const std::uint64_t counted = image.file().keys;
    const auto entries = static_cast<std::uint64_t>(
        std::ranges::count_if(keys, [](const sieve_key& key) { return entry_marked_by(key).has_value(); }));
    const std::uint64_t stored = keys.size() - entries;
    if (image.lookup().probes == 0 || !kind_of(image.lookup()).facts().changes_live)
        return entries == 0 && stored == counted;
    return entries > 0 && entries <= counted && stored > 0 && stored <= counted;
}

} // namespace

Status write_exact_file(std::span<const sieve_key> keys, int to) {
    ExactFileHeader header{.magic = exact_magic, .keys = keys.size(), .digest = {}};
    const std::string digest = digest_of(bytes_of(keys));
    std::ranges::copy(digest, header.digest);
    SIEVE_TRY(write_all(to, {reinterpret_cast<const char*>(&header), sizeof(header)}));
    return write_all(to, bytes_of(keys));
}

Result<std::vector<sieve_key>> read_exact_file(int from, const Image& image) {
    SIEVE_ASSIGN(const ExactFileHeader header, read_header(from));
    // Before memory is taken for them: a stored key and an entry for each of the image's.
    if (header.keys / 2 > image.file().keys)
        return bad_input("the keys for verification are not as many as the image's");
    std::vector<sieve_key> keys(header.keys);
    if (!read_whole(from, keys.data(), keys.size() * sizeof(sieve_key)))
        return bad_input("the keys for verification cannot be read");
    if (!std::ranges::equal(digest_of(bytes_of(keys)), header.digest)) return damaged();
    if (!are_as_many(keys, image))
        return bad_input("the keys for verification are not as many as the image's");
    if (std::adjacent_find(keys.begin(), keys.end(), [](const sieve_key& a, const sieve_key& b) {
            return !key_order(a, b);
        }) != keys.end())
        return bad_input("the keys for verification are not in order");
    return keys;
}

Status check_exact_file(int from) {
    SIEVE_ASSIGN(const ExactFileHeader header, read_header(from));
    std::vector<sieve_key> block(std::min<std::uint64_t>(header.keys, keys_at_once));
    Digest digest;
    for (std::uint64_t left = header.keys; left > 0;) {
        const auto now = std::span(block).first(std::min<std::uint64_t>(left, block.size()));
        if (!read_whole(from, now.data(), now.size_bytes()))
            return bad_input("the keys for verification cannot be read");
        digest.add(bytes_of(now));
        left -= now.size();
    }
    if (!std::ranges::equal(digest.hex(), header.digest)) return damaged();
    return {};
}

} // namespace sieve::service
