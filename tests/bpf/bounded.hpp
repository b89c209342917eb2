// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Smaller numbers for slow machines, such as emulated ones (scripts/vmtest.sh).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace sieve::test {

// How many keys or packets a test uses: the wanted number, but at most SIEVE_TEST_COUNT if that is set.
inline std::size_t bounded(std::size_t count) {
    const char* text = std::getenv("SIEVE_TEST_COUNT");
    const std::size_t most = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
    return most == 0 ? count : std::min(count, most);
}

} // namespace sieve::test
