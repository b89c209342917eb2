// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a refresh may cost before it is given up.
#pragma once

#include <chrono>
#include <cstdint>

namespace sieve::service {

struct SandboxLimits {
    // Of each source.
    std::uint64_t source_bytes = std::uint64_t{256} << 20; // as they come
    std::uint64_t unpacked_bytes = std::uint64_t{2} << 30; // after unpacking
    double unpack_ratio = 500;                             // bytes unpacked for a byte as it came
    std::chrono::milliseconds connect{std::chrono::seconds{10}};
    std::chrono::milliseconds fetch{std::chrono::minutes{5}}; // of a download or a command as a whole
    std::uint32_t low_speed_bytes = 100;                      // a second; a download that is slower ...
    std::chrono::seconds low_speed{30};                       // ... for so long is given up
    std::uint32_t redirects = 5;

    // Of building.
    std::chrono::milliseconds build{std::chrono::minutes{10}};
    // Memory that a child may write to (RLIMIT_DATA). Files in memory come on top: the sources as
    // they come, what was read of them, and the image.
    std::uint64_t memory_bytes = std::uint64_t{4} << 30;
    std::uint64_t image_bytes = std::uint64_t{4} << 30;
    std::chrono::seconds processor{
        std::chrono::minutes{20}}; // processor time of a child, all threads together
    int nice = 10;
};

} // namespace sieve::service
