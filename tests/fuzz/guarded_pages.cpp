// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "fuzz/guarded_pages.hpp"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <sanitizer/asan_interface.h>

#include "fuzz/support.hpp"

extern "C" {
// The linker's names for the C library's functions.
void* __real_mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void* address, std::size_t bytes);
int __real_madvise(void* address, std::size_t bytes, int advice);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void* address, std::size_t bytes);
int __wrap_madvise(void* address, std::size_t bytes, int advice);
}

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t room = std::size_t{256} << 10; // larger blocks are not guarded

struct Arena {
    std::uint8_t* begin = nullptr;
    std::uint8_t* used = nullptr; // from here to the end; null: free
    std::size_t bytes = 0;

    [[nodiscard]] std::uint8_t* end() const { return begin + room; }

    void* take(std::size_t wanted) {
        if (begin == nullptr) {
            void* pages = __real_mmap(nullptr, room + page, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            FUZZ_REQUIRE(pages != MAP_FAILED);
            begin = static_cast<std::uint8_t*>(pages);
            FUZZ_REQUIRE(::mprotect(end(), page, PROT_NONE) == 0);
        }
        used = end() - wanted;
        bytes = wanted;
        ASAN_POISON_MEMORY_REGION(begin, room - wanted);
        ASAN_UNPOISON_MEMORY_REGION(used, wanted);
        std::memset(used, 0, wanted);
        return used;
    }
};

std::array<Arena, 4> arenas;

Arena* arena_of(const void* address) {
    for (Arena& arena : arenas)
        if (address != nullptr && arena.used == address) return &arena;
    return nullptr;
}

} // namespace

void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
    if (address == nullptr && flags == (MAP_PRIVATE | MAP_ANONYMOUS) && bytes > 0 && bytes <= room)
        for (Arena& arena : arenas)
            if (arena.used == nullptr) return arena.take(bytes);
    return __real_mmap(address, bytes, protection, flags, fd, offset);
}

int __wrap_munmap(void* address, std::size_t bytes) {
    Arena* arena = arena_of(address);
    if (arena == nullptr) return __real_munmap(address, bytes);
    FUZZ_REQUIRE(arena->bytes == bytes);
    ASAN_POISON_MEMORY_REGION(arena->begin, room);
    arena->used = nullptr;
    return 0;
}

int __wrap_madvise(void* address, std::size_t bytes, int advice) {
    return arena_of(address) != nullptr ? 0 : __real_madvise(address, bytes, advice);
}

namespace sieve::fuzz {

bool guarded_pages_in_use() {
    for (const Arena& arena : arenas)
        if (arena.used != nullptr) return true;
    return false;
}

} // namespace sieve::fuzz
