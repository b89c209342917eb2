// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Adaptive Runge-Kutta integration of autonomous systems dy/dt = f(y).
//
// The papers' load and fill equations (two-choice (3.2), one-plus-alpha (3.3) and (3.5), d-left section II-A)
// are smooth and not stiff: every rate lies in [-d, d] for d choices. Dormand and Prince's embedded pair 5(4)
// therefore takes some hundred steps for ten digits. The error of each component is held below absolute +
// relative * |component|, so that the far tails of a load distribution keep their digits too.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <vector>

namespace sieve::analysis {

/// Error allowed per step and component: absolute + relative * |y|.
struct OdeTolerance {
    double relative = 1e-11;
    double absolute = 1e-30;
};

/// Carries the state y from time 0 to time t_end along dy/dt = f(y), in place.
///
/// `derivative(y, dydt)` fills dydt (already of y's size). Precondition: t_end >= 0, f smooth along the path.
/// Method: Dormand and Prince, "A family of embedded Runge-Kutta formulae" (1980), pair 5(4), local
/// extrapolation.
template <class Derivative>
void integrate(std::vector<double>& y, double t_end, Derivative&& derivative, OdeTolerance tolerance = {}) {
    assert(t_end >= 0 && tolerance.relative > 0 && tolerance.absolute > 0);
    constexpr std::size_t stages = 7;
    // Row s holds the weights of slopes 0..s-1 in the argument of slope s; the last row is the fifth-order
    // solution, whose slope is the next step's first one.
    constexpr std::array<std::array<double, 6>, stages> a{{
        {},
        {1.0 / 5},
        {3.0 / 40, 9.0 / 40},
        {44.0 / 45, -56.0 / 15, 32.0 / 9},
        {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
        {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
        {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
    }};
    // Fifth-order minus fourth-order weights.
    constexpr std::array<double, stages> e{71.0 / 57600,      0,          -71.0 / 16695, 71.0 / 1920,
                                           -17253.0 / 339200, 22.0 / 525, -1.0 / 40};

    const std::size_t n = y.size();
    std::array<std::vector<double>, stages> slope;
    for (auto& k : slope) k.resize(n);
    std::vector<double> next(n);

    derivative(y, slope[0]);
    double t = 0;
    double h = std::min(t_end, 1e-3);
    while (t < t_end) {
        const bool last = t + h >= t_end;
        if (last) h = t_end - t;

        for (std::size_t s = 1; s < stages; ++s) {
            for (std::size_t i = 0; i < n; ++i) {
                double sum = 0;
                for (std::size_t r = 0; r < s; ++r) sum += a[s][r] * slope[r][i];
                next[i] = y[i] + h * sum;
            }
            derivative(next, slope[s]);
        }

        double worst = 0;
        for (std::size_t i = 0; i < n; ++i) {
            double error = 0;
            for (std::size_t s = 0; s < stages; ++s) error += e[s] * slope[s][i];
            const double allowed =
                tolerance.absolute + tolerance.relative * std::max(std::abs(y[i]), std::abs(next[i]));
            worst = std::max(worst, std::abs(h * error) / allowed);
        }

        if (worst <= 1) {
            t = last ? t_end : t + h;
            y.swap(next);
            slope[0].swap(slope[stages - 1]);
        }
        const double factor = worst > 0 ? 0.9 * std::pow(worst, -0.2) : 5.0;
        h *= std::clamp(factor, 0.2, 5.0);
        assert(t >= t_end || t + h > t);
    }
}

} // namespace sieve::analysis
