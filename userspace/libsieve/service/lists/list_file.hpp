// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A parsed list as a file of fixed-size records, so that whoever gets it from an untrusted parser need not
// parse.
//
// All numbers are little-endian: struct ListFileHeader, then of each key the words that hold its selected
// fields (16 bytes for an address), then the ranges: of addresses, the first and the last one (16 bytes
// each); in a list of several fields, of keys (key_range_record.hpp).
#pragma once

#include <cstdint>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Writes the list to an empty file. The examples of skipped lines are left out.
[[nodiscard]] Status write_list_file(const Feed& list, int to);

// Reads it back, from its beginning. bad_input unless the file is exactly such a list of these fields, with
// counts that agree, keys and ranges that have no other field, and addresses that go upwards within one
// family. Memory: the list and a small buffer.
[[nodiscard]] Result<Feed> read_list_file(int from, std::uint32_t fields);

} // namespace sieve::service
