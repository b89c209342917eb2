// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The part that the builders of the two Bloom kinds share. Both kinds have a shape whose number of hashes may
// be left open, and planning functions that take this shape.
#pragma once

#include <cstdint>
#include <optional>

#include "libsieve/filters/kind_builder.hpp"
#include "libsieve/filters/sizing.hpp"

namespace sieve {

// The planning functions of a kind; the type of the shape selects the kind. These wrappers have other names
// than the builder's members, which would hide the functions.
namespace plan_of {
template <class Shape>
Result<std::uint64_t> lines(std::uint64_t keys, double fpr, const Shape& shape, std::uint32_t rounds) {
    return lines_for_fpr(keys, fpr, shape, rounds);
}
template <class Shape>
double model(double bits_per_key, const Shape& shape) {
    return model_fpr(bits_per_key, shape);
}
template <class Shape>
double rate(std::uint64_t keys, std::uint64_t lines, const Shape& shape, std::uint32_t rounds) {
    return predict_fpr(keys, lines, shape, rounds);
}
} // namespace plan_of

template <class Shape>
class BloomLikeBuilder : public KindBuilder {
  public:
    BloomLikeBuilder(const Shape& shape, std::uint32_t rounds) : shape_(shape), rounds_(rounds) {}

    [[nodiscard]] std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const override {
        return sieve::lines_for_bits(keys, bits_per_key);
    }
    [[nodiscard]] Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const override {
        return plan_of::lines(keys, fpr, shape_, rounds_);
    }
    [[nodiscard]] std::uint64_t usable_lines(std::uint64_t lines) const override { return lines; }

    [[nodiscard]] std::optional<double> model_fpr(std::uint64_t keys,
                                                  const sieve_lookup& lookup) const override {
        return plan_of::model(bits_per_key_of(keys, lookup.buckets), used(lookup));
    }
    [[nodiscard]] double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const override {
        return plan_of::rate(keys, lookup.buckets, used(lookup), rounds_);
    }

  protected:
    [[nodiscard]] const Shape& shape() const { return shape_; }
    [[nodiscard]] std::uint32_t rounds() const { return rounds_; }

    /// The requested number of hashes, or the best number at that size.
    [[nodiscard]] std::uint8_t hashes_for(std::uint64_t keys, std::uint64_t lines) const {
        return static_cast<std::uint8_t>(
            shape_.hashes != 0 ? shape_.hashes : best_hashes(bits_per_key_of(keys, lines), shape_));
    }

  private:
    /// The shape, with the number of hashes from the header.
    [[nodiscard]] Shape used(const sieve_lookup& lookup) const {
        Shape shape = shape_;
        shape.hashes = lookup.hashes;
        return shape;
    }

    Shape shape_;
    std::uint32_t rounds_;
};

} // namespace sieve
