// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/prefix_text.hpp"

#include <fmt/format.h>
#include <sieve/prefix.h>

#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/key_text.hpp"

namespace sieve {

std::string format_prefix(const sieve_exception& prefix, std::uint32_t fields) {
    std::string text;
    const auto add = [&text](const std::string& field) { text += (text.empty() ? "" : " ") + field; };
    const auto add_address = [&](const __u64* words, std::uint32_t length) {
        const bool v4 = sieve_family(words[0], words[1]) == SIEVE_FAMILY_V4;
        // A list of addresses has no field that stays open.
        if (length == 0) return add(sieve_is_one_address(fields) ? "::/0" : "*");
        add(format_address(words[0], words[1]) +
            (length == 128 ? "" : fmt::format("/{}", length - (v4 ? 96 : 0))));
    };
    if (fields & SIEVE_FIELD_SRC) add_address(prefix.key.word, prefix.bits.source);
    if (fields & SIEVE_FIELD_DST) add_address(prefix.key.word + 2, prefix.bits.destination);
    for (const auto field : {SIEVE_FIELD_SPORT, SIEVE_FIELD_DPORT, SIEVE_FIELD_PROTO})
        if (fields & field) add((prefix.bits.transport & field) != 0 ? format_key(prefix.key, field) : "*");
    return text;
}

} // namespace sieve
