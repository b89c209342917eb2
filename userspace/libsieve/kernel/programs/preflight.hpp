// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// No set goes live before it has answered correctly in the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

class ExactSet;

struct PreflightReport {
    std::uint64_t members = 0;            // witnesses that were asked; each of them matched
    std::uint64_t uncarriable = 0;        // witnesses that no packet can carry (an ICMP flow with ports, say)
    std::vector<std::string> obstacles{}; // why not
    std::uint64_t non_members = 0;        // random keys that were asked
    std::uint64_t matched = 0;            // of these
    std::uint64_t avoided = 0;    // of these, matches of the filter that the exact set did not confirm
    std::uint64_t exceptions = 0; // keys among the exceptions that were asked; none of them matched
    double expected_rate = 0;     // at which random keys should match, including members drawn by chance
    double milliseconds = 0;
};

// The keys that the kernel is asked about for an image, and the image's own answers. Drawing the keys takes
// milliseconds and needs no kernel, so it can happen while the program is verified.
class PreflightQuestions {
  public:
    explicit PreflightQuestions(const Image& image);

    struct Keys {
        std::vector<sieve_key> keys; // that a packet can carry, in the order they were drawn
        std::map<std::string_view, std::uint64_t> uncarriable{}; // how many others, by the obstacle
    };
    [[nodiscard]] const Keys& witnesses() const { return witnesses_; }
    [[nodiscard]] const Keys& non_members() const { return non_members_; }
    // Keys among the image's exceptions, a sample if they are many.
    [[nodiscard]] const Keys& exceptions() const { return exceptions_; }
    // Of the non-members: whether the image holds them, in user space.
    [[nodiscard]] const std::vector<char>& held() const { return held_; }

  private:
    Keys witnesses_;
    Keys non_members_;
    Keys exceptions_;
    std::vector<char> held_;
};

// Runs the real program, in a scratch instance, over the very map that is about to go live. The map is in
// slot `slot` of both banks. Packets with the image's witnesses must all match. Packets with random keys of
// the same shape must match if, and only if, the image matches in user space, and as often as its expected
// false positive rate predicts, within six sigma. The random keys reveal a filter that matches everything,
// which the witnesses cannot. If no packet can carry any witness, nothing was tested, and the set is refused.
// Packets with the image's exceptions must not match; only a set that is verified may have exceptions that
// its filter was not built to exclude. If the set is verified by an exact set, random keys must match as
// often as they are members, and the number of the filter's false positives must be as without verification.
// The error says which answers were wrong.
[[nodiscard]] Result<PreflightReport> preflight(const Scratch& scratch, std::uint32_t slot,
                                                const Image& image, const PreflightQuestions& questions,
                                                const std::string& name, bool verified);

// The same for several maps, one after the other.
class Preflight {
  public:
    static Result<Preflight> start(HookPoint point = HookPoint::xdp);

    // Uses only this object's own instance.
    [[nodiscard]] Result<PreflightReport> check(const Image& image, const FilterMap& map,
                                                const std::string& name, const ExactSet* exact = nullptr);

  private:
    explicit Preflight(Scratch scratch) : scratch_(std::move(scratch)) {}

    Scratch scratch_;
};

} // namespace sieve::kernel
