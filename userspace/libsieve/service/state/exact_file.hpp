// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys that verify a filter's matches as a file, with a checksum.
//
// All numbers are little-endian: struct ExactFileHeader, then the keys.
#pragma once

#include <span>
#include <vector>

#include <sieve/key.h>

#include "libsieve/image/image.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Writes the keys to an empty file.
[[nodiscard]] Status write_exact_file(std::span<const sieve_key> keys, int to);

// Reads them back, from the file's beginning. As many keys as the image holds, distinct and rising: what the
// kernel's map takes; of a prefix set that changes while it is in force, with its entries. bad_input for any
// other file. That the filter matches them is what the test in the kernel asks.
[[nodiscard]] Result<std::vector<sieve_key>> read_exact_file(int from, const Image& image);

// Whether the file is as it was written, by its checksum. bad_input if it is not. Memory: a small buffer.
[[nodiscard]] Status check_exact_file(int from);

} // namespace sieve::service
