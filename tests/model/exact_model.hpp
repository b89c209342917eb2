// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A slow, independent reading of images of kind `exact`, written from the description of the format at the
// head of include/sieve/exact_table.h. It shares no code with the packet path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sieve::model {

class ExactImage {
  public:
    explicit ExactImage(std::span<const unsigned char> bytes);

    // Whether the set holds this address of 128 bits, given as its two halves.
    [[nodiscard]] bool contains(std::uint64_t upper, std::uint64_t lower) const;

  private:
    [[nodiscard]] bool contains_ipv4(std::uint64_t address) const;
    [[nodiscard]] bool contains_ipv6(std::uint64_t upper, std::uint64_t lower) const;
    // Whether a lane of the word, from its lowest bits up, has this content.
    [[nodiscard]] bool has_lane(std::uint64_t word, std::uint64_t content) const;
    [[nodiscard]] std::uint64_t number(std::size_t offset, std::size_t size) const;

    std::vector<unsigned char> bytes_;
};

} // namespace sieve::model
