// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How well a measurement agrees with a number that somebody printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libsieve/util/result.hpp"

namespace sieve::experiments {

/// Mean and spread of samples, by Welford's recurrence: no cancellation where the mean is large against the
/// spread.
class Moments {
  public:
    void add(double x);

    std::uint64_t count() const { return count_; }
    double mean() const { return mean_; }
    /// Of the samples, unbiased: divided by count - 1. Zero for fewer than two samples.
    double variance() const;
    double deviation() const;
    /// Of the mean: deviation / sqrt(count).
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

/// A number as a paper prints it, and the true values that may hide behind the print.
struct Printed {
    std::string text{};
    double value = 0;
    double lower = 0; ///< half a unit of the last digit below, or the value itself where digits were cut off
    double upper = 0; ///< half a unit above; a whole one where digits were cut off
};

/// Reads "2.159e-2", "0.5296", "464" or "25.62%" (stays a percentage). Trailing dots, "0.0008937...", say
/// that the rest was cut off instead of rounded.
Result<Printed> parse_printed(std::string_view text);

/// parse_printed for a literal in the program, which is known to be right; ends the program if it is not.
Printed printed(std::string_view text);

/// How far `ours` lies outside the interval that the print allows: 0 inside, else signed.
double beyond_rounding(const Printed& published, double ours);

/// beyond_rounding in units of the standard error of the difference of two measurements: ours with the
/// standard error `ours_error`, the paper's with `published_error`; 0 for a number without error. Infinite if
/// both are exact and they disagree.
double sigmas(const Printed& published, double ours, double ours_error, double published_error);

/// The standard error of a rate that was counted: sqrt(p (1-p) / trials).
double counting_error(double rate, double trials);

} // namespace sieve::experiments
