// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// No set goes live before it has answered right in the kernel.
#pragma once

#include <cstdint>
#include <string>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/filter_map.hpp"
#include "libsieve/kernel/scratch.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::kernel {

struct PreflightReport {
    std::uint64_t members = 0;     // witnesses that were asked; each of them matched
    std::uint64_t uncarriable = 0; // witnesses that no packet can carry (an ICMP flow with ports, say)
    std::uint64_t strangers = 0;   // random keys that were asked
    std::uint64_t matched = 0;     // of these
    double expected_rate = 0;      // at which strangers should match, members met by chance included
    double milliseconds = 0;
};

// Runs the real program, in an instance of its own, over the very map that shall go live. Packets that carry
// the image's witnesses must all match; packets that carry random keys of the same shape must match as often
// as the image's expected false positive rate says, within six sigma. The second part finds what the first
// cannot: a filter that matches everything.
class Preflight {
  public:
    static Result<Preflight> start();

    // The error says what was wrong with the answers; nothing but this object's own instance was touched.
    [[nodiscard]] Result<PreflightReport> check(const Image& image, const FilterMap& map,
                                                const std::string& name);

  private:
    explicit Preflight(Scratch scratch) : scratch_(std::move(scratch)) {}

    Scratch scratch_;
};

} // namespace sieve::kernel
