// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Flow keys of one kind, packed: what a feed yields and a builder takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sieve/key.h>

namespace sieve {

// A list of flow keys that all select the same fields. Only the words that these fields live in are kept (16
// bytes for an address, 40 for a five-tuple), since sets reach 10^8 keys. Order and repetitions are the
// feed's.
class KeySet {
  public:
    explicit KeySet(std::uint32_t fields);

    [[nodiscard]] std::uint32_t fields() const { return fields_; }
    [[nodiscard]] std::size_t size() const { return words_.size() / stride_; }
    [[nodiscard]] bool empty() const { return words_.empty(); }

    void reserve(std::size_t keys) { words_.reserve(keys * stride_); }

    // Adds the key's selected fields; other fields of `key` are ignored.
    void add(const sieve_key& key);

    // Adds all of `other`, which must have the same fields.
    void append(const KeySet& other);

    // The key at an index in canonical form (unselected fields zero).
    [[nodiscard]] sieve_key at(std::size_t index) const;

    // Gives the memory back.
    void clear();

  private:
    std::uint32_t fields_;
    std::uint32_t stride_;
    std::uint64_t transport_mask_;
    std::vector<std::uint64_t> words_;
};

} // namespace sieve
