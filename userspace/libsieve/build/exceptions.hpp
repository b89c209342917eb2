// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys that a filter must not match, not even by a false positive.
//
// Each question that an exception asks of a filter of rate p (image/exceptions.hpp) finds a false positive
// with chance p. So q questions find none with chance (1-p)^q, about exp(-pq), and the builder draws fresh
// hash keys until a filter passes: exp(pq) tries on average. A thousand exceptions at a rate of 2.7e-4
// take 1.3 tries.
#pragma once

#include <cstdint>
#include <vector>

#include <sieve/image.h>

#include "libsieve/image/image.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

struct Exceptions {
    std::vector<sieve_exception> lines{}; // none of them is a member (keys/members.hpp)
    // The set's matches will be verified, and that alone keeps the exceptions from matching: the filter may
    // match them.
    bool verified = false;
    // Keys that the filter should not match by a false positive, such as addresses that its host lives by.
    // They are no promise and are not in the image: the builder draws fresh hash keys for them as well, but
    // takes a filter that matches some of them if too many tries are to be expected, if the tries run out, or
    // if a seed fixes the hash keys. Members among them do not count.
    std::vector<sieve_key> spared{};
};

// The builder gives up beforehand if more tries than this are to be expected, and afterwards at ten times as
// many.
inline constexpr double most_expected_tries = 20;
inline constexpr std::uint32_t most_tries = 200;

// The questions that the exceptions ask of an image with this header. invalid_request: too many exceptions,
// or too many questions.
[[nodiscard]] Result<std::uint64_t> count_questions(const Exceptions& exceptions, const Image& image);

// How many tries are to be expected if each question has this rate.
[[nodiscard]] double expected_tries(std::uint64_t questions, double rate);

// The rate of a question at which so many tries are to be expected.
[[nodiscard]] double rate_for_tries(std::uint64_t questions, double tries);

} // namespace sieve
