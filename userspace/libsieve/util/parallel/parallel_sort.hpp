// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Sorting on several threads. The library's parallel algorithms take the compiler half a second a source, so
// only the few sources that sort include them.
#pragma once

#include <algorithm>

#include "libsieve/util/parallel/parallel.hpp"

#ifndef SIEVE_THREAD_SANITIZER
#include <execution>
#endif

namespace sieve {

/// Sorts on several threads. The comparison must not have side effects. ThreadSanitizer cannot follow the
/// library's parallel sort, so under it the sort runs on one thread.
template <typename Iterator, typename Less>
void sort_in_parallel(Iterator first, Iterator last, Less less) {
#ifdef SIEVE_THREAD_SANITIZER
    std::sort(first, last, less);
#else
    if (take_pool())
        std::sort(std::execution::par_unseq, first, last, less);
    else
        std::sort(first, last, less);
#endif
}

} // namespace sieve
