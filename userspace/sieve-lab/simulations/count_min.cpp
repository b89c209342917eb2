// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/count_min.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include <fmt/core.h>

namespace sieve {

namespace {

constexpr std::uint64_t mersenne = (std::uint64_t{1} << 61) - 1;

bool is_prime(std::uint64_t n) {
    if (n < 2) return false;
    for (std::uint64_t f = 2; f * f <= n; f++)
        if (n % f == 0) return false;
    return true;
}

// A number below the Mersenne prime, by rejection.
std::uint64_t draw(std::mt19937_64& random) {
    for (;;)
        if (const std::uint64_t x = random() >> 3; x < mersenne) return x;
}

} // namespace

std::uint64_t CountMin::Hash::operator()(std::uint64_t item, std::uint64_t width) const {
    using Wide = unsigned __int128;
    const Wide sum = Wide{a0} * (item & 0xffffffff) + Wide{a1} * (item >> 32) + b;
    return static_cast<std::uint64_t>(sum % mersenne) % width;
}

CountMin::CountMin(std::uint64_t width, std::uint32_t depth, std::uint64_t seed)
    : width_(width), depth_(depth), counters_(width * depth) {
    std::mt19937_64 random(seed);
    for (Hash* hash : {&first_, &step_}) *hash = {draw(random), draw(random), draw(random)};
}

Result<CountMin> CountMin::create(std::uint64_t width, std::uint32_t depth, std::uint64_t seed) {
    if (width > std::numeric_limits<std::uint32_t>::max() || !is_prime(width))
        return invalid_request(
            fmt::format("a Count-Min sketch {} counters wide, expected a prime below 2^32", width));
    if (depth == 0 || depth > width)
        return invalid_request(fmt::format("a Count-Min sketch of {} rows, expected 1 to {}", depth, width));
    return CountMin(width, depth, seed);
}

// Calls visit(index of the counter) for each row.
template <class Visit>
void CountMin::for_each_counter(std::uint64_t item, Visit visit) const {
    std::uint64_t at = first_(item, width_);
    const std::uint64_t step = step_(item, width_);
    for (std::uint64_t row = 0; row < depth_; row++) {
        visit(row * width_ + at);
        at += step;
        if (at >= width_) at -= width_;
    }
}

void CountMin::update(std::uint64_t item, std::uint64_t count) {
    total_ += count;
    for_each_counter(item, [&](std::uint64_t at) { counters_[at] += count; });
}

std::uint64_t CountMin::estimate(std::uint64_t item) const {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for_each_counter(item, [&](std::uint64_t at) { least = std::min(least, counters_[at]); });
    return least;
}

} // namespace sieve
