// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Single keys into and out of a counting filter that packets may be looked up in, with its header kept true.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sieve/image.h>

#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

enum class KeyChange : std::uint8_t {
    insert,       // refused if the key matches already
    insert_again, // also then: it has to be deleted as often as it was inserted
    erase,
};

struct KeyChangeReport {
    std::uint64_t done = 0;      // keys that were changed
    std::uint64_t repeated = 0;  // listed more than once, and changed once
    std::vector<sieve_key> told; // insert: matched already; erase: did not match
    std::vector<sieve_key> full; // insert: no room in their buckets
    std::uint64_t keys = 0;      // in the filter now
    double expected_fpr = 0;     // of the filter now, exactly, over random keys
};

// Makes the change for each key, one after another; each is whole before the next begins, and what cannot be
// done changes nothing and does not hinder the others. Keeps the number of keys, the number of changes and
// the expected rate in `file`. Error, nothing changed: the filter is not of a kind that keys can be changed
// in, or its header and lines do not belong together, or there is no memory. Error of kind unfinished: memory
// ran out when some keys were changed; `file` counts them. One writer at a time (sieve/ddlcbf.h tells why
// packets need not be kept away).
Result<KeyChangeReport> change_keys(const sieve_lookup& lookup, sieve_file& file,
                                    std::span<sieve_line> filter, const KeySet& keys, KeyChange change,
                                    const Progress& progress);

} // namespace sieve
