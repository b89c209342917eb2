// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Compares every kind of filter for a number of keys: size, accuracy and cost. Recommends one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sieve/image.h>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// More keys have more bits than the lines of any image.
inline constexpr std::uint64_t most_planned_keys = std::uint64_t{1} << 40;

struct PlanRequest {
    std::uint64_t keys = 0;
    std::uint32_t fields = 0; ///< of the keys, IPv4; 0: they may be single addresses or others
    // One of these, or neither: then each kind has the size that it has if nobody asks for one.
    std::optional<double> fpr{};           ///< the rate to stay below
    std::optional<std::uint64_t> memory{}; ///< bytes of the whole image
    /// Time a small build of each kind. If false, build costs are 0 and the plan is the same every time.
    bool calibrate = true;
    const Kinds* kinds = &built_in_kinds(); ///< to compare
};

/// One form of a kind (FilterKind::forms) with its best parameters.
struct Candidate {
    std::string kind{};          ///< as in `build --kind`
    std::string parameters{};    ///< for people: "2 choices, k = 13"
    std::string options{};       ///< for `build`: "--kind blocked --choices 2"
    std::string infeasible{};    ///< why it is impossible; the rest then means nothing
    std::uint64_t bytes = 0;     ///< of the image, header and witnesses included
    double bits_per_key = 0;     ///< of the filter's own lines
    sieve_lookup lookup{};       ///< the filter's geometry
    double fpr = 0;              ///< predicted by building a small filter of the same shape
    double lines_non_member = 0; ///< cache lines that a non-matching packet touches, on average
    double lines_member = 0;     ///< cache lines that a matching packet touches, on average
    /// Processor time a key in nanoseconds, measured in a small build on this machine; 0: not measured.
    double build_ns = 0;
    /// Without false positives. The size is that of random IPv4 addresses, or of random keys of the fields
    /// that were given; prefixes take less. Recommended only for single addresses, and only if neither a rate
    /// nor a memory is given.
    bool exact = false;
};

struct Plan {
    std::vector<Candidate> candidates{};
    std::optional<std::size_t> recommended{}; ///< index of a candidate; empty if no kind is suitable
    std::string reason{};
    /// Of the other keys, if `recommended` is a kind for single addresses, and the fields were not given.
    std::optional<std::size_t> for_other_keys{};
    std::string reason_for_other_keys{};
};

/// The most cache lines that a packet may touch in a recommended filter, as long as some kind manages with
/// this many. A packet has to wait for memory, and compared with that wait the filter's size is cheap.
inline constexpr double most_lines_recommended = 2;

/// A filter that touches one line is recommended if it needs at most this many times the memory of the best
/// filter that touches two, or has at most this many times its rate.
inline constexpr double worth_of_one_line = 1.1;

/// Evaluates all forms of all kinds of the request, on all cores; takes seconds. Errors: no keys, both fpr
/// and memory, a rate outside [least_fpr, 1).
Result<Plan> make_plan(const PlanRequest& request, const Progress& progress);

/// Chooses what a build without a kind chooses (build/default_kind.hpp). If neither a rate nor a memory was
/// given, that is kind `exact` for addresses, as long as it takes at most most_bytes_of_exact, and a filter
/// for other keys. Among filters, chooses one that touches at most most_lines_recommended lines: the smallest
/// (if a rate was given) or the most accurate (if not), unless a filter of one line does nearly as well. If
/// no candidate touches so few lines, chooses the one that touches the fewest. Fills in everything but the
/// candidates.
void recommend(Plan& plan, const PlanRequest& request);

} // namespace sieve
