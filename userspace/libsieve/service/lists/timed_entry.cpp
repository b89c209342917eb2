// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/timed_entry.hpp"

#include <random>

#include <fmt/core.h>
#include <xxhash.h>

#include "libsieve/feeds/text/address_text.hpp"

namespace sieve::service::live {

namespace {

constexpr int address_bits = 128;
constexpr int ipv4_bits = 32;

} // namespace

uint128 Prefix::host_bits() const {
    return length == 0 ? ~uint128{0} : (uint128{1} << (address_bits - length)) - 1;
}

AddressRange Prefix::range() const {
    return {address, address | host_bits()};
}

std::size_t PrefixHash::operator()(const Prefix& prefix) const {
    // Drawn once, so that nobody can fill a bucket with addresses of his choice.
    static const std::uint64_t seed = [] {
        std::random_device random;
        return std::uint64_t{random()} << 32 | random();
    }();
    const std::uint64_t words[3] = {static_cast<std::uint64_t>(prefix.address >> 64),
                                    static_cast<std::uint64_t>(prefix.address), prefix.length};
    return XXH3_64bits_withSeed(words, sizeof(words), seed);
}

std::string prefix_text(const Prefix& prefix) {
    const std::string address = format_address(static_cast<std::uint64_t>(prefix.address >> 64),
                                               static_cast<std::uint64_t>(prefix.address));
    if (prefix.is_single()) return address;
    const bool ipv4 = is_ipv4(prefix.address) && prefix.length >= address_bits - ipv4_bits;
    return fmt::format("{}/{}", address, prefix.length - (ipv4 ? address_bits - ipv4_bits : 0));
}

} // namespace sieve::service::live
