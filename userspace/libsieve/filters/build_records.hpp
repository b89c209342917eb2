// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From keys to records (sieve/records.h).
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>

#include <sieve/records.h>

#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

struct RecordsOrder {
    std::uint32_t fields = 0;            // of the set
    bool prefixes = false;               // the keys are stored ones (sieve/exact.h)
    std::uint64_t room = 0;              // how many keys shall find room later; 0: no key ever comes or goes
    std::optional<std::uint64_t> seed{}; // only for tests: see draw_secret()
};

// The lines that so many keys and so much room take, header included.
[[nodiscard]] std::uint64_t record_lines_for(std::uint64_t keys, const RecordsOrder& order);

// Places each key once, however often it is listed. bad_input: a key has a word that is not stored;
// invalid_request: the keys are more than an array of lines can hold.
[[nodiscard]] Result<HugeArray<sieve_line>> build_records(std::span<const sieve_key> keys,
                                                          const RecordsOrder& order);
// The same, with secrets that are drawn from `random`.
[[nodiscard]] Result<HugeArray<sieve_line>> build_records(std::span<const sieve_key> keys,
                                                          const RecordsOrder& order, std::mt19937_64& random);

} // namespace sieve
