// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/keys/key_set.hpp"

#include <cassert>

namespace sieve {

KeySet::KeySet(std::uint32_t fields)
    : fields_(fields), stride_(((fields & SIEVE_FIELD_SRC) ? 2 : 0) + ((fields & SIEVE_FIELD_DST) ? 2 : 0) +
                               ((fields & SIEVE_FIELD_TRANSPORT) ? 1 : 0)),
      transport_mask_(sieve_transport_mask(fields)) {
    assert(fields != 0 && (fields & ~std::uint32_t{SIEVE_FIELD_ALL}) == 0);
}

void KeySet::add(const sieve_key& key) {
    if (fields_ & SIEVE_FIELD_SRC) words_.insert(words_.end(), {key.word[0], key.word[1]});
    if (fields_ & SIEVE_FIELD_DST) words_.insert(words_.end(), {key.word[2], key.word[3]});
    if (fields_ & SIEVE_FIELD_TRANSPORT) words_.push_back(key.word[4] & transport_mask_);
}

void KeySet::append(const KeySet& other) {
    assert(other.fields_ == fields_);
    words_.insert(words_.end(), other.words_.begin(), other.words_.end());
}

sieve_key KeySet::at(std::size_t index) const {
    sieve_key key{};
    const std::uint64_t* word = words_.data() + index * stride_;
    if (fields_ & SIEVE_FIELD_SRC) {
        key.word[0] = *word++;
        key.word[1] = *word++;
    }
    if (fields_ & SIEVE_FIELD_DST) {
        key.word[2] = *word++;
        key.word[3] = *word++;
    }
    if (fields_ & SIEVE_FIELD_TRANSPORT) key.word[4] = *word;
    return key;
}

void KeySet::clear() {
    std::vector<std::uint64_t>().swap(words_);
}

} // namespace sieve
