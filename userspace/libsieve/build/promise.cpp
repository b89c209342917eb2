// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/promise.hpp"

#include <cstdint>

#include <fmt/core.h>

#include "libsieve/build/measure.hpp"

namespace sieve {

namespace {

constexpr std::uint64_t least_keys_to_compare = 4096;
constexpr double most_excess = 1.5;
constexpr double most_deviations = 6;

bool is_far_above_prediction(const Image& image, const BuildReport& report) {
    const double expected = report.expected_fpr;
    const double predicted = report.predicted_fpr;
    if (report.keys < least_keys_to_compare || expected <= predicted * most_excess) return false;
    const double of_one_line = unlucky_share / static_cast<double>(image.filter().size());
    if (expected > of_one_line && is_unlucky(report)) return true;
    return expected > predicted * most_excess + most_deviations * scatter_of_expected_fpr(image);
}

} // namespace

bool is_unlucky(const BuildReport& report) {
    return report.keys >= least_keys_to_compare &&
           report.expected_fpr > report.predicted_fpr * most_times_predicted;
}

Status check_promise(const Image& image, const BuildReport& report) {
    // The expected rate of non-members with the shapes of the measured ones.
    const double expected = expected_fpr_of_witnesses(image, report.expected_fpr);
    if (!fits_rate(image, report.measured_hits, report.measured_trials, expected))
        return bad_input(fmt::format("refused: {} of {} random keys matched, which contradicts the expected "
                                     "rate {:.3g} by more than six sigma; "
                                     "build again (a new seed is drawn), and report it if it happens twice",
                                     report.measured_hits, report.measured_trials, expected));
    if (is_far_above_prediction(image, report))
        return bad_input(
            fmt::format("refused: the filter's rate {:.3g} is far above the predicted {:.3g}; build again (a "
                        "new seed is drawn), and report it if it happens twice",
                        report.expected_fpr, report.predicted_fpr));
    return {};
}

} // namespace sieve
