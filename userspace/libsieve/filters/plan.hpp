// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Every kind of filter for a number of keys, side by side: how large, how good, what it costs, and which one
// to take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sieve/image.h>

#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

struct PlanRequest {
    std::uint64_t keys = 0;
    std::optional<double> fpr{};           ///< the rate to stay below; this or memory
    std::optional<std::uint64_t> memory{}; ///< bytes of the whole image; this or fpr
    /// Time a small build of each kind. Without, build costs are 0 and a plan is the same every time.
    bool calibrate = true;
};

/// One form of a kind (FilterKind::forms) with its best parameters.
struct Candidate {
    std::string kind{};          ///< as in `build --kind`
    std::string parameters{};    ///< for people: "2 choices, k = 13"
    std::string options{};       ///< for `build`: "--kind blocked --choices 2"
    std::string infeasible{};    ///< why it cannot be had at all; the rest then means nothing
    std::uint64_t bytes = 0;     ///< of the image, header and witnesses included
    double bits_per_key = 0;     ///< of the filter's own lines
    sieve_lookup lookup{};       ///< the filter's geometry
    double fpr = 0;              ///< predicted by building a small filter of the same shape
    double lines_non_member = 0; ///< cache lines that a packet which does not match touches, on average
    double lines_member = 0;     ///< and one that does
    /// Processor time a key in nanoseconds, of a small build on this machine; 0: not measured.
    double build_ns = 0;
};

struct Plan {
    std::vector<Candidate> candidates{};
    std::optional<std::size_t> recommended{}; ///< index of a candidate; none if no kind will do
    std::string reason{};
};

/// Most cache lines that a recommended filter makes a packet touch, whenever some kind can do with so few: a
/// packet waits for memory, and the memory of a filter is cheap beside that.
inline constexpr double most_lines_recommended = 2;

/// A filter of one line is recommended if it takes at most this much more memory than the best of two, or has
/// at most this much higher a rate.
inline constexpr double worth_of_one_line = 1.1;

/// Works out all forms of all kinds of the registry, on all cores; takes seconds. Errors: no keys, neither or
/// both of fpr and memory, a rate outside [least_fpr, 1).
Result<Plan> make_plan(const PlanRequest& request, const Progress& progress);

/// The choice among candidates: of those that touch at most most_lines_recommended lines the smallest (for a
/// rate) or the most accurate (for a memory), unless one line does nearly as well; if there is none, the one
/// that touches the fewest lines. Fills in `recommended` and `reason`.
void recommend(Plan& plan, const PlanRequest& request);

} // namespace sieve
