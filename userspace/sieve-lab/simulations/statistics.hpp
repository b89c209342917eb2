// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells how well a measurement agrees with a printed number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve::experiments {

/// Mean and spread of samples, by Welford's recurrence. It avoids cancellation where the mean is much larger
/// than the spread.
class Moments {
  public:
    void add(double x);

    std::uint64_t count() const { return count_; }
    double mean() const { return mean_; }
    /// The unbiased deviation of the samples: divided by count - 1. Zero for fewer than two samples.
    double variance() const;
    double deviation() const;
    /// The standard error of the mean: deviation / sqrt(count).
    double standard_error() const;
    double smallest() const { return smallest_; }
    double largest() const { return largest_; }

  private:
    std::uint64_t count_ = 0;
    double mean_ = 0;
    double squares_ = 0; // sum of squared distances from the mean
    double smallest_ = 0;
    double largest_ = 0;
};

/// A number as a paper prints it, with the range of true values that it may stand for.
struct Printed {
    std::string text{};
    double value = 0;
    double lower = 0; ///< half a unit of the last digit below, or the value itself where digits were cut off
    double upper = 0; ///< half a unit above; a whole one where digits were cut off
};

/// Reads "2.159e-2", "0.5296", "464" or "25.62%" (stays a percentage). Trailing dots, as in "0.0008937...",
/// mean that the rest was cut off and not rounded.
Result<Printed> parse_printed(std::string_view text);

/// parse_printed for a literal in the program. Ends the program if the literal is wrong.
Printed printed(std::string_view text);

/// How far `ours` lies outside the interval that the print allows: 0 inside, otherwise signed.
double beyond_rounding(const Printed& published, double ours);

/// beyond_rounding, in units of the standard error of the difference between two measurements. Our standard
/// error is `ours_error` and the paper's is `published_error`; 0 means an exact number. The result is
/// infinite if both are exact and they disagree.
double sigmas(const Printed& published, double ours, double ours_error, double published_error);

/// The standard error of a counted rate: sqrt(p (1-p) / trials).
double counting_error(double rate, double trials);

} // namespace sieve::experiments
