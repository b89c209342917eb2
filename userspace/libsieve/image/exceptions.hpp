// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Exceptions: the keys that an image promises not to match.
//
// A filter is asked probe by probe, so an exception asks it as many questions as there are stored keys, of
// all probes, that a key among the exception could ask for. A single key asks one question for each probe; a
// prefix asks more where a probe is longer than the prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sieve/image.h>

namespace sieve {

// More exceptions, or more questions, than these are refused.
inline constexpr std::uint64_t most_exceptions = 65'536;
inline constexpr std::uint64_t most_exception_questions = std::uint64_t{1} << 24;

// What a packet of this family asks the filter, whether it is a prefix set or not.
[[nodiscard]] std::vector<sieve_probe> probes_of(const sieve_lookup& lookup, const sieve_probes& probes,
                                                 int family);

// How many questions the exception asks: may be above most_exception_questions by far.
[[nodiscard]] double count_questions(const sieve_exception& exception, const sieve_lookup& lookup,
                                     const sieve_probes& probes);

// Calls visit(key, probe) for each question until it returns false; returns false if it did.
bool for_each_question(const sieve_exception& exception, const sieve_lookup& lookup,
                       const sieve_probes& probes,
                       const std::function<bool(const sieve_key& key, const sieve_probe& probe)>& visit);

// Says what is wrong with an exception under this header; empty if nothing is.
[[nodiscard]] std::string exception_fault(const sieve_exception& exception, const sieve_lookup& lookup);

} // namespace sieve
