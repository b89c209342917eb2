// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/exceptions.hpp"

#include <cmath>

#include <fmt/core.h>

#include "libsieve/image/exceptions.hpp"

namespace sieve {

namespace {

constexpr const char* other_way = "put them into a set of their own in front, with action pass and verify";

} // namespace

Result<std::uint64_t> count_questions(const Exceptions& exceptions, const Image& image) {
    if (exceptions.lines.size() > most_exceptions)
        return invalid_request(fmt::format("{} exceptions, but an image holds at most {}; {}",
                                           exceptions.lines.size(), most_exceptions, other_way));
    double questions = 0;
    if (exceptions.verified) return 0;
    for (const sieve_exception& exception : exceptions.lines)
        questions += count_questions(exception, image.lookup(), image.probes());
    if (questions > static_cast<double>(most_exception_questions))
        return invalid_request(fmt::format(
            "the exceptions hold {:.3g} keys that the filter would have to be asked about, at most {} "
            "are possible; verify the set, which excludes them exactly, or {}",
            questions, most_exception_questions, other_way));
    return static_cast<std::uint64_t>(questions);
}

double expected_tries(std::uint64_t questions, double rate) {
    return std::exp(-static_cast<double>(questions) * std::log1p(-rate));
}

double rate_for_tries(std::uint64_t questions, double tries) {
    return -std::expm1(-std::log(tries) / static_cast<double>(questions));
}

} // namespace sieve
