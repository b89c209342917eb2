// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/memory_reserve.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <vector>

#include <gtest/gtest.h>

namespace sieve {
namespace {

constexpr std::size_t piece = 16 << 10;

// The process may have no more address space than it has now.
void limit_to_what_is_there() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const std::size_t bytes = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const struct rlimit limit { bytes, bytes };
    if (::setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(10);
}

// How many pieces there are before there is no more.
std::size_t pieces_to_be_had(std::vector<std::unique_ptr<char[]>>& pieces) {
    const std::size_t before = pieces.size();
    try {
        for (;;) pieces.push_back(std::make_unique<char[]>(piece));
    } catch (const std::bad_alloc&) {
        return pieces.size() - before;
    }
}

// In a process of its own. Exit status: 0, or the number of what is wrong.
[[noreturn]] void live_without_memory() {
    std::vector<std::unique_ptr<char[]>> taken;
    std::vector<std::unique_ptr<char[]>> more;
    taken.reserve(100'000);
    more.reserve(100'000);
    keep_memory_in_reserve();
    limit_to_what_is_there();
    const std::new_handler handler = std::set_new_handler(nullptr);
    pieces_to_be_had(taken); // all but the reserve
    std::set_new_handler(handler);
    const std::size_t in_reserve = pieces_to_be_had(more) * piece;
    if (in_reserve < (256 << 10) || in_reserve > (1 << 20)) std::_Exit(1);
    keep_memory_in_reserve(); // there is nothing to put by
    if (pieces_to_be_had(more) > 0) std::_Exit(2);
    // There is again, and so is the reserve.
    more.clear();
    taken.clear();
    ::malloc_trim(0);
    keep_memory_in_reserve();
    std::set_new_handler(nullptr);
    pieces_to_be_had(taken);
    std::set_new_handler(handler);
    std::_Exit(pieces_to_be_had(more) * piece < (256 << 10) ? 3 : 0);
}

TEST(MemoryReserve, IsThereWhenNothingElseIs) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(live_without_memory(), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace sieve
