// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Random flow keys of the same shapes as a set's members. False positive rates are measured with them.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/image.h>

#include "libsieve/util/random/splitmix64.hpp"

namespace sieve {

// Draws a member of the sample and takes its shape (which address is IPv4, which protocol). Then draws every
// address bit and port uniformly within that shape.
class RandomKeys {
  public:
    // `sample` must not be empty and must outlive this object, which keeps a reference.
    RandomKeys(std::span<const sieve_witness> sample, std::uint32_t fields, std::uint64_t seed)
        : sample_(sample), fields_(fields), random_(seed) {}

    sieve_key operator()();

  private:
    std::span<const sieve_witness> sample_;
    std::uint32_t fields_;
    SplitMix64 random_;
};

} // namespace sieve
