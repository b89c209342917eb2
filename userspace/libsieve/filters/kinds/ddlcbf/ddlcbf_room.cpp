// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_room.hpp"

#include "libsieve/analysis/d_left.hpp"

namespace sieve {

double ddlcbf_keys_without_room(std::uint64_t keys, std::uint64_t lines, const DdlcbfShape& shape) {
    const double buckets = static_cast<double>(lines) * (1U << SIEVE_DDLCBF_LINE_SHIFT);
    const double average = static_cast<double>(keys) / buckets;
    const std::uint32_t capacity = shape.bucket().capacity();
    // The equations take long to solve for loads that are hopeless anyway.
    if (average >= capacity) return static_cast<double>(keys);
    // A key more or less decides nothing, so three digits do.
    constexpr double accuracy = 1e-5;
    const std::vector<double> loads = analysis::d_left::overall_loads(
        analysis::d_left::load_distribution(shape.subtables, average, accuracy));
    double beyond = 0;
    for (std::size_t load = capacity + 1; load < loads.size(); load++)
        beyond += loads[load] * static_cast<double>(load - capacity);
    return buckets * beyond;
}

} // namespace sieve
