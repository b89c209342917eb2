// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/clock.hpp"

#include <ctime>
#include <sstream>
#include <string>

#include "libsieve/util/system/small_file.hpp"

namespace sieve {

namespace {

constexpr std::size_t longest_offsets = 4096; // one page of /proc
constexpr std::int64_t second = 1'000'000'000;

} // namespace

std::int64_t monotonic_offset(std::string_view timens_offsets) {
    std::istringstream text{std::string(timens_offsets)};
    std::string clock;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    while (text >> clock >> seconds >> nanoseconds)
        if (clock == "monotonic") return seconds * second + nanoseconds;
    return 0;
}

std::uint64_t program_now() {
    // A kernel without time namespaces has no such file. A process stays in its time namespace until it
    // executes another program.
    static const std::int64_t offset =
        monotonic_offset(small_file_or_nothing("/proc/self/timens_offsets", longest_offsets));
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec * second + now.tv_nsec - offset);
}

} // namespace sieve
