// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/packet_key.hpp"

#include <linux/bpf.h>

#include "libsieve/feeds/text/address_text.hpp"

namespace sieve::cli {

nlohmann::ordered_json key_json(const sieve_key& key, std::uint32_t have) {
    const auto field = [have](sieve_field bit, nlohmann::ordered_json value) {
        return (have & bit) != 0 ? value : nlohmann::ordered_json();
    };
    const auto& word = key.word;
    return {{"src", field(SIEVE_FIELD_SRC, format_address(word[0], word[1]))},
            {"dst", field(SIEVE_FIELD_DST, format_address(word[2], word[3]))},
            {"sport", field(SIEVE_FIELD_SPORT, (word[4] >> SIEVE_SPORT_SHIFT) & 0xffff)},
            {"dport", field(SIEVE_FIELD_DPORT, (word[4] >> SIEVE_DPORT_SHIFT) & 0xffff)},
            {"proto", field(SIEVE_FIELD_PROTO, (word[4] >> SIEVE_PROTO_SHIFT) & 0xff)}};
}

const char* verdict_name(std::uint32_t verdict) {
    return verdict == XDP_DROP ? "drop" : verdict == XDP_REDIRECT ? "redirect" : "pass";
}

} // namespace sieve::cli
