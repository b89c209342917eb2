// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// No set goes live before it has answered right in the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/exact_map.hpp"
#include "libsieve/kernel/filter_map.hpp"
#include "libsieve/kernel/scratch.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::kernel {

struct PreflightReport {
    std::uint64_t members = 0;     // witnesses that were asked; each of them matched
    std::uint64_t uncarriable = 0; // witnesses that no packet can carry (an ICMP flow with ports, say)
    std::uint64_t non_members = 0; // random keys that were asked
    std::uint64_t matched = 0;     // of these
    std::uint64_t avoided = 0;     // of these, matches of the filter that the exact set did not confirm
    double expected_rate = 0;      // at which non-members should match, members met by chance included
    double milliseconds = 0;
};

// What an image is asked in the kernel, and what it says itself. Takes milliseconds to draw, for which no
// kernel is needed: time enough while the program is verified.
class PreflightQuestions {
  public:
    explicit PreflightQuestions(const Image& image);

    struct Keys {
        std::vector<sieve_key> keys;   // that a packet can carry, in the order they were drawn
        std::uint64_t uncarriable = 0; // others
    };
    [[nodiscard]] const Keys& witnesses() const { return witnesses_; }
    [[nodiscard]] const Keys& non_members() const { return non_members_; }
    // Of the non-members: whether the image holds them, in user space.
    [[nodiscard]] const std::vector<char>& held() const { return held_; }

  private:
    Keys witnesses_;
    Keys non_members_;
    std::vector<char> held_;
};

// Runs the real program, in an instance that has no packets, over the very map that shall go live, which
// stands in place `slot` of both banks. Packets that carry the image's witnesses must all match; packets that
// carry random keys of the same shape must match when, and only when, the image says so in user space, and as
// often as its expected false positive rate says, within six sigma. A set of which no packet can carry a
// single witness is refused: nothing was tested. What the second part finds and the first cannot: a filter
// that matches everything. The error says what was wrong with the answers. If the set is verified, by an
// exact set in the same place, non-members must match as often as a random key is a member, and the filter's
// mistakes must be as many as without.
[[nodiscard]] Result<PreflightReport> preflight(const Scratch& scratch, std::uint32_t slot,
                                                const Image& image, const PreflightQuestions& questions,
                                                const std::string& name, bool verified);

// The same for one map after the other.
class Preflight {
  public:
    static Result<Preflight> start(HookPoint point = HookPoint::xdp);

    // Nothing but this object's own instance is touched.
    [[nodiscard]] Result<PreflightReport> check(const Image& image, const FilterMap& map,
                                                const std::string& name, const ExactMap* exact = nullptr);

  private:
    explicit Preflight(Scratch scratch) : scratch_(std::move(scratch)) {}

    Scratch scratch_;
};

} // namespace sieve::kernel
