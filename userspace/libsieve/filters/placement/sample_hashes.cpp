// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/sample_hashes.hpp"

#include <algorithm>

#include "libsieve/filters/placement/distinct_hashes.hpp"

namespace sieve {

std::vector<sieve_hash> sample_hashes(std::uint64_t count, std::mt19937_64& random) {
    std::vector<sieve_hash> hashes(count);
    for (auto& hash : hashes) {
        hash.locate = random();
        hash.test = random();
    }
    std::sort(hashes.begin(), hashes.end(), hash_order);
    return hashes;
}

} // namespace sieve
