// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys whose only field is an address.
#pragma once

#include <cstdint>

#include <sieve/prefix.h>

#include "libsieve/keys/address_range.hpp"

namespace sieve {

// `fields` is one address, SIEVE_FIELD_SRC or SIEVE_FIELD_DST.
[[nodiscard]] inline sieve_key key_of_address(uint128 address, std::uint32_t fields) {
    sieve_key key{};
    const int word = sieve_address_word(fields);
    key.word[word] = static_cast<std::uint64_t>(address >> 64);
    key.word[word + 1] = static_cast<std::uint64_t>(address);
    return key;
}

[[nodiscard]] inline uint128 address_of_key(const sieve_key& key, std::uint32_t fields) {
    const int word = sieve_address_word(fields);
    return address_number(key.word[word], key.word[word + 1]);
}

} // namespace sieve
