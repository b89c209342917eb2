// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Adaptive Runge-Kutta integration of autonomous systems dy/dt = f(y).
//
// The papers' load and fill equations (two-choice (3.2), one-plus-alpha (3.3) and (3.5), d-left section II-A)
// are smooth and not stiff: every rate lies in [-d, d] for d choices. Dormand and Prince's embedded pair 5(4)
// therefore takes a few hundred steps for ten digits. The error of each component is held below absolute +
// relative * |component|, so that the far tails of a load distribution keep their digits too.
#pragma once

#include <algorithm>
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
    const std::size_t n = y.size();
    std::vector<double> k1(n), k2(n), k3(n), k4(n), k5(n), k6(n), k7(n); // the slopes, in the paper's names
    std::vector<double> next(n);

    derivative(y, k1);
    double t = 0;
    double h = std::min(t_end, 1e-3);
    while (t < t_end) {
        const bool last = t + h >= t_end;
        if (last) h = t_end - t;

        const auto stage = [&](std::vector<double>& result, auto&& slope_at) {
            for (std::size_t i = 0; i < n; ++i) next[i] = y[i] + h * slope_at(i);
            derivative(next, result);
        };
        stage(k2, [&](std::size_t i) { return 1.0 / 5 * k1[i]; });
        stage(k3, [&](std::size_t i) { return 3.0 / 40 * k1[i] + 9.0 / 40 * k2[i]; });
        stage(k4, [&](std::size_t i) { return 44.0 / 45 * k1[i] - 56.0 / 15 * k2[i] + 32.0 / 9 * k3[i]; });
        stage(k5, [&](std::size_t i) {
            return 19372.0 / 6561 * k1[i] - 25360.0 / 2187 * k2[i] + 64448.0 / 6561 * k3[i] -
                   212.0 / 729 * k4[i];
        });
        stage(k6, [&](std::size_t i) {
            return 9017.0 / 3168 * k1[i] - 355.0 / 33 * k2[i] + 46732.0 / 5247 * k3[i] + 49.0 / 176 * k4[i] -
                   5103.0 / 18656 * k5[i];
        });
        // The fifth-order solution; its slope is the next step's first one.
        stage(k7, [&](std::size_t i) {
            return 35.0 / 384 * k1[i] + 500.0 / 1113 * k3[i] + 125.0 / 192 * k4[i] - 2187.0 / 6784 * k5[i] +
                   11.0 / 84 * k6[i];
        });

        double worst = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double error = 71.0 / 57600 * k1[i] - 71.0 / 16695 * k3[i] + 71.0 / 1920 * k4[i] -
                                 17253.0 / 339200 * k5[i] + 22.0 / 525 * k6[i] - 1.0 / 40 * k7[i];
            const double allowed =
                tolerance.absolute + tolerance.relative * std::max(std::abs(y[i]), std::abs(next[i]));
            worst = std::max(worst, std::abs(h * error) / allowed);
        }

        if (worst <= 1) {
            t = last ? t_end : t + h;
            y.swap(next);
            k1.swap(k7);
        }
        const double factor = worst > 0 ? 0.9 * std::pow(worst, -0.2) : 5.0;
        h *= std::clamp(factor, 0.2, 5.0);
        assert(t >= t_end || t + h > t);
    }
}

} // namespace sieve::analysis
