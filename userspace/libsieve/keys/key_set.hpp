// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Packed flow keys of one set of fields, as a feed yields and a builder takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sieve/key.h>

namespace sieve {

// A list of flow keys that all select the same fields. It stores only the words that hold these fields (16
// bytes for an address, 40 for a five-tuple), because sets reach 10^8 keys. Order and repetitions are those
// of the feed.
class KeySet {
  public:
    explicit KeySet(std::uint32_t fields);

    [[nodiscard]] std::uint32_t fields() const { return fields_; }
    [[nodiscard]] std::size_t size() const { return words_.size() / stride_; }
    [[nodiscard]] bool empty() const { return words_.empty(); }

    void reserve(std::size_t keys) { words_.reserve(keys * stride_); }

    // Adds the key's selected fields; other fields of `key` are ignored.
    void add(const sieve_key& key);

    // The same for an IPv4 address, faster. The fields must be one address.
    void add_ipv4(std::uint32_t address) {
        words_.push_back(0);
        words_.push_back(sieve_v4_mapped(address));
    }

    // Adds all of `other`, which must have the same fields.
    void append(const KeySet& other);

    // The key at an index in canonical form (unselected fields zero).
    [[nodiscard]] sieve_key at(std::size_t index) const;

    // The stored words of all keys, stride() of them for each.
    [[nodiscard]] std::span<const std::uint64_t> words() const { return words_; }
    [[nodiscard]] std::size_t stride() const { return stride_; }

    // Adds the keys whose words() these are.
    void append_words(std::span<const std::uint64_t> words) {
        words_.insert(words_.end(), words.begin(), words.end());
    }

    // Removes all keys and frees their memory.
    void clear();

  private:
    std::uint32_t fields_;
    std::uint32_t stride_;
    std::uint64_t transport_mask_;
    std::vector<std::uint64_t> words_;
};

} // namespace sieve
