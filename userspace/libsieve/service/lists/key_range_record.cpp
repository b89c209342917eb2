// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/key_range_record.hpp"

#include <algorithm>
#include <type_traits>

#include "libsieve/keys/address_ranges.hpp"

namespace sieve::service {

static_assert(sizeof(AddressRange) == address_range_words * sizeof(std::uint64_t));
static_assert(std::has_unique_object_representations_v<AddressRange>);

namespace {

// A range of IPv6 that ends with the v4-mapped addresses is one, too: ::/80 does.
bool goes_upwards(const AddressRange& range) {
    const bool same_family = is_ipv4(range.first) == is_ipv4(range.last);
    return range.first <= range.last &&
           (same_family || (!is_ipv4(range.first) && range.last == all_ipv4.last));
}

} // namespace

std::optional<AddressRange> address_range_of(std::span<const std::uint64_t, address_range_words> record) {
    const AddressRange range{address_number(record[1], record[0]), address_number(record[3], record[2])};
    if (!goes_upwards(range) || range.first == range.last) return std::nullopt;
    return range;
}

KeyRangeRecord record_of(const KeyRange& range) {
    const auto upper = [](uint128 address) { return static_cast<std::uint64_t>(address >> 64); };
    const auto lower = [](uint128 address) { return static_cast<std::uint64_t>(address); };
    const auto& [source, destination, transport, fields] = range;
    return {upper(source.first),     lower(source.first),      upper(source.last),
            lower(source.last),      upper(destination.first), lower(destination.first),
            upper(destination.last), lower(destination.last),  transport,
            std::uint64_t{fields}};
}

std::optional<KeyRange> key_range_of(std::span<const std::uint64_t, key_range_words> record,
                                     std::uint32_t fields) {
    const auto address = [&](std::size_t at) { return address_number(record[at], record[at + 1]); };
    const KeyRange range{.source = {address(0), address(2)},
                         .destination = {address(4), address(6)},
                         .transport = record[8],
                         .fields = static_cast<std::uint32_t>(record[9])};
    const auto is_right = [&](const AddressRange& addresses, std::uint32_t field) {
        return (range.fields & field) != 0 ? goes_upwards(addresses) : addresses == AddressRange{};
    };
    if (range.fields == 0 || (record[9] & ~std::uint64_t{fields}) != 0 ||
        (range.transport & ~sieve_transport_mask(range.fields)) != 0 ||
        !is_right(range.source, SIEVE_FIELD_SRC) || !is_right(range.destination, SIEVE_FIELD_DST))
        return std::nullopt;
    const bool both = (range.fields & SIEVE_FIELD_ADDRESSES) == SIEVE_FIELD_ADDRESSES;
    if (both && family_of(range.source) != family_of(range.destination)) return std::nullopt;
    return range;
}

} // namespace sieve::service
