// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The calls to oneTBB. Only parallel.cpp uses them.
//
// The Makefile compiles task_pool.cpp without ThreadSanitizer. Debian's oneTBB is not instrumented.
// ThreadSanitizer would see the half of it that consists of templates, but not the library's own atomics, and
// so it would report every task that one thread hands to another.
#pragma once

#include <cstddef>
#include <memory>

namespace sieve::task_pool {

/// oneTBB's limit on threads; 0 means one thread for each processor.
struct Limit;
struct EndLimit {
    void operator()(Limit* limit) const;
};
std::unique_ptr<Limit, EndLimit> limit_threads(std::size_t threads);

/// Calls task(context, index) for each index below `count`, in parallel.
void for_each(std::size_t count, void (*task)(void* context, std::size_t index), void* context);

/// A pipeline whose first and last stages are serial. Items are slots; no more than `slots` are under way.
struct Pipeline {
    bool (*first)(void* context, std::size_t& slot); ///< false: no more items
    void (*middle)(void* context, std::size_t slot);
    void (*last)(void* context, std::size_t slot);
};
void run(std::size_t threads, std::size_t slots, const Pipeline& pipeline, void* context);

} // namespace sieve::task_pool
