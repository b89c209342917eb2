// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Words of the IPv4 part of a table (sieve/exact_table.h), lane by lane, and the keys that lanes stand for.
#pragma once

#include <bit>
#include <cstdint>

#include <sieve/exact_table.h>

#include "libsieve/filters/kinds/exact/exact_geometry.hpp"

namespace sieve::exact {

/// A key of the IPv4 part by its first word and its remainder, which together determine it.
struct Key {
    std::uint32_t first;
    std::uint32_t rest;
};

class Lanes {
  public:
    explicit Lanes(const sieve_exact& exact)
        : exact_(&exact), width_(exact.width), marks_(exact.marks), value_bits_(exact.value_bits),
          stride_(lane_bits(exact)), count_(64 / stride_), feet_(exact.feet),
          heads_(sieve_exact_heads(&exact)), none_((std::uint64_t{1} << exact.width) - 1),
          values_((exact.feet << exact.value_bits) - exact.feet) {}

    [[nodiscard]] std::uint32_t count() const { return count_; }
    /// The content of a lane without a key.
    [[nodiscard]] std::uint64_t none() const { return none_; }
    [[nodiscard]] std::uint64_t empty_word() const { return none_ * feet_; }
    /// The bits that belong to no lane; they are zero.
    [[nodiscard]] std::uint64_t no_lane() const { return ~(empty_word() | marks()); }
    /// All marks; zero in a table without.
    [[nodiscard]] std::uint64_t marks() const { return marks_ != 0 ? heads_ << 1 : 0; }
    /// The lane's mark, in a table with marks.
    [[nodiscard]] std::uint64_t mark(std::uint32_t lane) const {
        return marks_ != 0 ? std::uint64_t{1} << (lane * stride_ + width_) : 0;
    }

    /// What a lane holds, its mark apart.
    [[nodiscard]] std::uint64_t get(std::uint64_t word, std::uint32_t lane) const {
        return (word >> (lane * stride_)) & none_;
    }
    /// The word with this content in the lane, which is not marked.
    [[nodiscard]] std::uint64_t with(std::uint64_t word, std::uint32_t lane, std::uint64_t content) const {
        return (word & ~(none_ << (lane * stride_)) & ~mark(lane)) | content << (lane * stride_);
    }

    /// The highest bits of exactly those lanes that have this content, whatever its value.
    [[nodiscard]] std::uint64_t equal(std::uint64_t word, std::uint64_t content) const {
        const std::uint64_t differ = (word ^ (content * feet_)) & ~values_;
        const std::uint64_t lower = heads_ - feet_; // a lane's other bits
        return ~(((differ & lower) + lower) | differ) & heads_;
    }
    [[nodiscard]] std::uint64_t free(std::uint64_t word) const { return equal(word, none_); }
    /// How many lanes equal() or free() found: the product's highest lane is the sum of all. (Processors
    /// count bits in one instruction, but not all that this code is compiled for.)
    [[nodiscard]] std::uint64_t how_many(std::uint64_t found) const {
        return ((found >> (width_ - 1)) * feet_ >> ((count_ - 1) * stride_)) &
               ((std::uint64_t{1} << stride_) - 1);
    }
    /// The lowest lane of those that equal() or free() found; at least one.
    [[nodiscard]] std::uint32_t lowest(std::uint64_t found) const {
        return static_cast<std::uint32_t>(std::countr_zero(found)) / stride_;
    }

    /// The content that stands for a remainder in a key's first or second word.
    [[nodiscard]] std::uint64_t in_first(std::uint32_t rest, std::uint32_t value = 0) const {
        return std::uint64_t{rest} << value_bits_ | value;
    }
    [[nodiscard]] std::uint64_t in_second(std::uint32_t rest, std::uint32_t value = 0) const {
        return (std::uint64_t{exact_->range} + rest) << value_bits_ | value;
    }
    [[nodiscard]] bool is_second(std::uint64_t content) const {
        return content >> value_bits_ >= exact_->range;
    }
    /// Whether the content is that of a lane: a key's, or none.
    [[nodiscard]] bool is_content(std::uint64_t content) const {
        return content == none_ || content >> value_bits_ < 2 * std::uint64_t{exact_->range};
    }
    [[nodiscard]] std::uint32_t value_of(std::uint64_t content) const {
        return static_cast<std::uint32_t>(content & ((std::uint64_t{1} << value_bits_) - 1));
    }

    /// The key that this content, which is not none(), stands for in this word.
    [[nodiscard]] Key key_of(std::uint32_t word, std::uint64_t content) const {
        const std::uint64_t entry = content >> value_bits_;
        if (!is_second(content)) return {word, static_cast<std::uint32_t>(entry)};
        const auto rest = static_cast<std::uint32_t>(entry - exact_->range);
        const std::uint32_t offset = sieve_exact_offset(exact_, rest);
        return {word >= offset ? word - offset : word + exact_->words - offset, rest};
    }

    /// The other word that the key may be in.
    [[nodiscard]] std::uint32_t other_word(std::uint32_t word, std::uint64_t content) const {
        const Key key = key_of(word, content);
        if (is_second(content)) return key.first;
        const std::uint64_t second = std::uint64_t{word} + sieve_exact_offset(exact_, key.rest);
        return static_cast<std::uint32_t>(second < exact_->words ? second : second - exact_->words);
    }
    /// The content that stands for the key there, with the same value.
    [[nodiscard]] std::uint64_t other_content(std::uint64_t content) const {
        const std::uint64_t range = std::uint64_t{exact_->range} << value_bits_;
        return is_second(content) ? content - range : content + range;
    }

  private:
    const sieve_exact* exact_;
    std::uint32_t width_;
    std::uint32_t marks_;
    std::uint32_t value_bits_;
    std::uint32_t stride_; // from a lane to the next one
    std::uint32_t count_;
    std::uint64_t feet_;
    std::uint64_t heads_;
    std::uint64_t none_;
    std::uint64_t values_; // the bits of all lanes' values
};

/// Undoes sieve_exact_permute().
class Inverse {
  public:
    explicit Inverse(const sieve_exact& exact) : add_(exact.add) {
        for (int i = 0; i < 3; i++) {
            // Newton's iteration doubles the correct bits each time, from three on.
            std::uint32_t inverse = exact.multiply[i];
            for (int step = 0; step < 4; step++) inverse *= 2 - exact.multiply[i] * inverse;
            multiply_[i] = inverse;
        }
    }

    [[nodiscard]] std::uint32_t address_of(std::uint32_t permuted) const {
        std::uint32_t x = permuted * multiply_[2];
        x ^= x >> 16;
        x *= multiply_[1];
        x ^= x >> 15 ^ x >> 30;
        x *= multiply_[0];
        x ^= x >> 16;
        return x - add_;
    }

  private:
    std::uint32_t add_;
    std::uint32_t multiply_[3] = {};
};

/// The permuted address of a key. If no address has this first word and remainder, the result is one that has
/// another place.
[[nodiscard]] inline std::uint32_t permuted_of(const sieve_exact& exact, Key key) {
    // The least product with this remainder, and the least P with at least this product.
    const std::uint64_t low = ((std::uint64_t{key.rest} << 32) + exact.range - 1) / exact.range;
    return static_cast<std::uint32_t>(((std::uint64_t{key.first} << 32) + low + exact.words - 1) /
                                      exact.words);
}

} // namespace sieve::exact
