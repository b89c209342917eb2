// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/random_keys.hpp"

#include <utility>

namespace sieve {

namespace {

bool is_v4(const __u64* address) {
    return address[0] == 0 && (address[1] >> 32) == (SIEVE_V4_MAPPED >> 32);
}

} // namespace

sieve_key RandomKeys::operator()() {
    sieve_key key = sample_[random_.below(sample_.size())].key;
    for (const auto& [field, at] : {std::pair{SIEVE_FIELD_SRC, 0}, std::pair{SIEVE_FIELD_DST, 2}}) {
        if ((fields_ & static_cast<std::uint32_t>(field)) == 0) continue;
        if (is_v4(key.word + at)) {
            key.word[at + 1] = sieve_v4_mapped(static_cast<std::uint32_t>(random_()));
        } else {
            key.word[at] = random_();
            key.word[at + 1] = random_();
        }
    }
    const std::uint64_t ports = sieve_transport_mask(fields_ & SIEVE_FIELD_PORTS);
    if (ports != 0) key.word[4] = (key.word[4] & ~ports) | (random_() & ports);
    return key;
}

} // namespace sieve
