// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A value that is made at its first use and then stays, without a lock. A static variable of a function is
// made under a lock, for which a child of fork(2) would wait for ever if another thread of its parent was
// about to make the value.
#pragma once

#include <atomic>
#include <memory>

namespace sieve {

// What is known, or else what `make` returns. Threads that come at the same time may all make a value; each
// gets the same one. It is never freed.
template <class T, class Make>
const T& first_use(std::atomic<const T*>& known, Make make) {
    if (const T* const value = known.load(std::memory_order_acquire)) return *value;
    auto made = std::make_unique<const T>(make());
    const T* other = nullptr;
    if (known.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel)) return *made.release();
    return *other;
}

} // namespace sieve
