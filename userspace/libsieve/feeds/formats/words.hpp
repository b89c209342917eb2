// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Cutting text into words, and telling what a word is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/feeds/text/entry.hpp"

namespace sieve::formats {

// Takes the next word off the text: what stands before the next blank or tab, after any at the start. Empty
// at the end.
[[nodiscard]] std::string_view take_word(std::string_view& text);

// Whether the line's first word is this one, and another one follows it.
[[nodiscard]] bool starts_with_word(std::string_view line, std::string_view word);

// Takes the next line off the text, without its end.
[[nodiscard]] std::string_view take_line(std::string_view& text);

[[nodiscard]] std::string_view without_blanks(std::string_view text);

// An address as a 128-bit number, IPv4 in its mapped form; nothing if the whole word is no address.
struct WordAddress {
    uint128 number = 0;
    bool v4 = false; // written as a dotted quad
};
[[nodiscard]] std::optional<WordAddress> address_of(std::string_view word);

using entry::is_address_like;

// The number that a word of one to three digits is, leading zeros included; nothing if it is another word or
// above `most`.
[[nodiscard]] std::optional<unsigned> small_number(std::string_view word, unsigned most);

// A fault in words.
[[nodiscard]] entry::Fault fault_of(std::string sentence);

// Puts an entry's components, which a packet filter's set lists in the order of its type, into the order of
// the fields: addresses in their order, then the port, then the protocol. Returns false, with a fault, if the
// components are not as many as the fields: then the entry means something else than the key.
[[nodiscard]] bool order_components(std::span<const std::string> components, std::uint32_t fields,
                                    std::string& text, entry::Fault& fault);

} // namespace sieve::formats
