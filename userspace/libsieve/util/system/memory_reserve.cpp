// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/memory_reserve.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <thread>

namespace sieve {

namespace {

constexpr std::size_t reserve_bytes = std::size_t{512} << 10;

std::thread::id owner;
void* reserve = nullptr; // the owner's alone

// Other threads have their bad_alloc caught.
void use_reserve() {
    if (std::this_thread::get_id() != owner || reserve == nullptr) throw std::bad_alloc();
    ::munmap(reserve, reserve_bytes);
    reserve = nullptr;
}

} // namespace

void keep_memory_in_reserve() {
    if (owner == std::thread::id()) {
        owner = std::this_thread::get_id();
        std::set_new_handler(use_reserve);
    }
    if (std::this_thread::get_id() != owner || reserve != nullptr) return;
    void* const memory = ::mmap(nullptr, reserve_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) reserve = memory;
}

} // namespace sieve
