// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/list_digest.hpp"

#include <fmt/core.h>
#include <xxhash.h>

#include "libsieve/service/lists/key_range_record.hpp"

namespace sieve::service {

namespace {

// So that entries of one sort are never taken for those of another.
constexpr std::uint64_t key_seed = 1;
constexpr std::uint64_t range_seed = 2;
constexpr std::uint64_t key_range_seed = 3;

template <class Entry>
uint128 hash_of(const Entry& entry, std::uint64_t seed) {
    static_assert(std::has_unique_object_representations_v<Entry>);
    const XXH128_hash_t hash = XXH3_128bits_withSeed(&entry, sizeof(entry), seed);
    return static_cast<uint128>(hash.high64) << 64 | hash.low64;
}

} // namespace

std::string digest_of_list(const Feed& list) {
    uint128 sum = list.keys.fields();
    for (std::size_t i = 0; i < list.keys.size(); i++) sum += hash_of(list.keys.at(i), key_seed);
    for (const AddressRange& range : list.ranges) sum += hash_of(range, range_seed);
    for (const KeyRange& range : list.key_ranges) sum += hash_of(record_of(range), key_range_seed);
    return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(sum >> 64),
                       static_cast<std::uint64_t>(sum));
}

} // namespace sieve::service
