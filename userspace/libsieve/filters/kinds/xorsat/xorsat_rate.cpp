// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/xorsat/xorsat_rate.hpp"

#include <array>
#include <bit>

#include "libsieve/analysis/xorsat.hpp"

namespace sieve {

std::vector<double> expected_xorsat_rates(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                                          std::uint32_t parts) {
    std::array<double, SIEVE_XORSAT_MAX_Q + 1> rate_of_q{};
    for (int q = 0; q <= SIEVE_XORSAT_MAX_Q; q++)
        rate_of_q[static_cast<std::size_t>(q)] = analysis::xorsat::rate_of_q(q);
    const auto rate_of = [&](const sieve_line& line) { return rate_of_q[line.word[0] & 255]; };
    std::vector<double> rates;
    for (std::uint32_t first = 0; first < parts; first++) {
        double sum = 0;
        std::uint32_t count = 0;
        for (std::uint32_t line = first; line < lines.size(); line += parts, count++)
            for (std::uint32_t eighth = 0; eighth < SIEVE_XORSAT_EIGHTHS; eighth++)
                sum += rate_of(sieve_xorsat_exports(&lines[line], eighth) == 0
                                   ? lines[line]
                                   : lines[sieve_xorsat_other(&lookup, line, eighth)]);
        rates.push_back(sum / (static_cast<double>(count) * SIEVE_XORSAT_EIGHTHS));
    }
    return rates;
}

double expected_xorsat_rate(const sieve_lookup& lookup, std::span<const sieve_line> lines) {
    return expected_xorsat_rates(lookup, lines, 1).front();
}

double xorsat_exported(std::span<const sieve_line> lines) {
    double sum = 0;
    for (const sieve_line& line : lines) sum += std::popcount(line.word[0] >> 8 & 255);
    return sum / (static_cast<double>(lines.size()) * SIEVE_XORSAT_EIGHTHS);
}

} // namespace sieve
