// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A slow, independent reading of images of kind `exact`, written from the description of the format at the
// head of include/sieve/exact_table.h, and for keys of several fields from that of include/sieve/records.h.
// It shares no code with the packet path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sieve::model {

class ExactImage {
  public:
    explicit ExactImage(std::span<const unsigned char> bytes);

    // The value of this address of 128 bits, given as its two halves; nothing if the table does not have it.
    // 0 in a table without values.
    [[nodiscard]] std::optional<std::uint64_t> value(std::uint64_t upper, std::uint64_t lower) const;
    // Whether the set holds the address at that time, in nanoseconds, if entries end.
    [[nodiscard]] bool contains(std::uint64_t upper, std::uint64_t lower, std::uint64_t now = 0) const;

    // Of a set whose key is not one address: whether it holds the key, given as its five words.
    [[nodiscard]] bool contains(const std::array<std::uint64_t, 5>& key) const;

  private:
    [[nodiscard]] std::optional<std::uint64_t> value_ipv4(std::uint64_t address) const;
    [[nodiscard]] std::optional<std::uint64_t> value_ipv6(std::uint64_t upper, std::uint64_t lower) const;
    // The value of the lane of the word, from its lowest bits up, that has this entry.
    [[nodiscard]] std::optional<std::uint64_t> lane(std::uint64_t word, std::uint64_t entry) const;
    [[nodiscard]] std::uint64_t number(std::size_t offset, std::size_t size) const;

    std::vector<unsigned char> bytes_;
};

} // namespace sieve::model
