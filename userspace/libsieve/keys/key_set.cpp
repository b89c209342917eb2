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

void KeySet::reserve(std::size_t keys) {
    reserved_ = keys;
    if (words_.empty() && sieve_is_one_address(fields_))
        addresses_.reserve(keys);
    else
        reserve_words();
}

void KeySet::reserve_words() {
    if (reserved_ > addresses_.size()) words_.reserve((reserved_ - addresses_.size()) * stride_);
}

void KeySet::add(const sieve_key& key) {
    if (words_.empty()) {
        const __u64* address = key.word + sieve_address_word(fields_);
        const auto lower = static_cast<std::uint32_t>(address[1]);
        if (sieve_is_one_address(fields_) && address[0] == 0 && address[1] == sieve_v4_mapped(lower))
            return addresses_.push_back(lower);
        reserve_words();
    }
    if (fields_ & SIEVE_FIELD_SRC) words_.insert(words_.end(), {key.word[0], key.word[1]});
    if (fields_ & SIEVE_FIELD_DST) words_.insert(words_.end(), {key.word[2], key.word[3]});
    if (fields_ & SIEVE_FIELD_TRANSPORT) words_.push_back(key.word[4] & transport_mask_);
}

void KeySet::append(const KeySet& other) {
    assert(other.fields_ == fields_);
    append_addresses(other.addresses_);
    append_words(other.words_);
}

void KeySet::append_addresses(std::span<const std::uint32_t> addresses) {
    if (words_.empty())
        addresses_.insert(addresses_.end(), addresses.begin(), addresses.end());
    else
        for (const std::uint32_t address : addresses) add_ipv4(address);
}

void KeySet::append_words(std::span<const std::uint64_t> words) {
    if (words.empty()) return;
    if (words_.empty()) reserve_words();
    words_.insert(words_.end(), words.begin(), words.end());
}

sieve_key KeySet::at(std::size_t index) const {
    sieve_key key{};
    if (index < addresses_.size()) {
        key.word[sieve_address_word(fields_) + 1] = sieve_v4_mapped(addresses_[index]);
        return key;
    }
    const std::uint64_t* word = words_.data() + (index - addresses_.size()) * stride_;
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
    std::vector<std::uint32_t>().swap(addresses_);
    std::vector<std::uint64_t>().swap(words_);
    reserved_ = 0;
}

} // namespace sieve
