// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A zeroed array. A large one is on large pages if the kernel has them: on small pages, random accesses spend
// their time on address translation. A small one comes from the heap, because mapping pages takes longer than
// filling them, and makes threads wait for each other.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace sieve {

// Move-only. Throws std::bad_alloc, as std::vector does.
template <class T>
class HugeArray {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                  "its elements come to be by zeroed memory");

  public:
    HugeArray() = default;
    explicit HugeArray(std::size_t size) : size_(size), capacity_(size) {
        if (size == 0) return;
        data_ = static_cast<T*>(is_small() ? from_heap(bytes()) : from_pages(bytes()));
    }
    HugeArray(HugeArray&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    HugeArray& operator=(HugeArray&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~HugeArray() {
        if (data_ == nullptr) return;
        if (is_small())
            std::free(data_);
        else
            ::munmap(data_, bytes());
    }

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }

    // Drops all elements from `size` on. Their memory is freed only with the array.
    void truncate(std::size_t size) { size_ = size; }

    [[nodiscard]] T* data() { return data_; }
    [[nodiscard]] const T* data() const { return data_; }
    [[nodiscard]] T& operator[](std::size_t at) { return data_[at]; }
    [[nodiscard]] const T& operator[](std::size_t at) const { return data_[at]; }
    [[nodiscard]] T* begin() { return data_; }
    [[nodiscard]] T* end() { return data_ + size_; }
    [[nodiscard]] const T* begin() const { return data_; }
    [[nodiscard]] const T* end() const { return data_ + size_; }

  private:
    static constexpr std::size_t least_pages = std::size_t{1} << 17; // bytes
    static constexpr std::size_t alignment = 64;                     // a line of the processor's cache

    [[nodiscard]] std::size_t bytes() const { return capacity_ * sizeof(T); }
    [[nodiscard]] bool is_small() const { return bytes() < least_pages; }

    static void* from_heap(std::size_t bytes) {
        const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
        void* memory = std::aligned_alloc(alignment, whole);
        if (memory == nullptr) throw std::bad_alloc();
        return std::memset(memory, 0, whole);
    }
    static void* from_pages(std::size_t bytes) {
        void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) throw std::bad_alloc();
        ::madvise(pages, bytes, MADV_HUGEPAGE); // only a hint
        return pages;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

} // namespace sieve
