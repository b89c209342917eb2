// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Packed flow keys of one set of fields, as a feed yields and a builder takes them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <sieve/prefix.h>

namespace sieve {

// A list of flow keys that all select the same fields. It stores only what holds these fields, because sets
// reach 10^8 keys: 40 bytes for a five-tuple, 16 for an address, and 4 for an IPv4 address if only such came
// before it. Order and repetitions are those of the feed.
class KeySet {
  public:
    explicit KeySet(std::uint32_t fields);

    [[nodiscard]] std::uint32_t fields() const { return fields_; }
    [[nodiscard]] std::size_t size() const { return addresses_.size() + words_.size() / stride_; }
    [[nodiscard]] bool empty() const { return addresses_.empty() && words_.empty(); }

    void reserve(std::size_t keys);

    // Adds the key's selected fields; other fields of `key` are ignored.
    void add(const sieve_key& key);

    // The same for an IPv4 address, faster. The fields must be one address.
    void add_ipv4(std::uint32_t address) {
        if (words_.empty())
            addresses_.push_back(address);
        else
            words_.insert(words_.end(), {0, sieve_v4_mapped(address)});
    }

    // Adds all of `other`, which must have the same fields.
    void append(const KeySet& other);

    // The key at an index in canonical form (unselected fields zero).
    [[nodiscard]] sieve_key at(std::size_t index) const;

    // Calls visit(at(i)) for each index from `first` to before `last`, faster than at().
    template <class Visit>
    void for_each(std::size_t first, std::size_t last, const Visit& visit) const {
        sieve_key key{};
        __u64& lower = key.word[sieve_address_word(fields_) + 1];
        for (; first < std::min(last, addresses_.size()); first++) {
            lower = sieve_v4_mapped(addresses_[first]);
            visit(std::as_const(key));
        }
        for (; first < last; first++) visit(at(first));
    }

    // The stored IPv4 addresses, with which the list begins, and the stored words of all other keys, stride()
    // of them for each.
    [[nodiscard]] std::span<const std::uint32_t> addresses() const { return addresses_; }
    [[nodiscard]] std::span<const std::uint64_t> words() const { return words_; }
    [[nodiscard]] std::size_t stride() const { return stride_; }

    // Adds the keys whose addresses() or words() these are.
    void append_addresses(std::span<const std::uint32_t> addresses);
    void append_words(std::span<const std::uint64_t> words);

    // Removes all keys and frees their memory.
    void clear();

    // Removes all keys and keeps their memory for others.
    void restart() {
        addresses_.clear();
        words_.clear();
    }

  private:
    void reserve_words();

    std::uint32_t fields_;
    std::uint32_t stride_;
    std::uint64_t transport_mask_;
    std::size_t reserved_ = 0; // keys
    std::vector<std::uint32_t> addresses_;
    std::vector<std::uint64_t> words_;
};

} // namespace sieve
