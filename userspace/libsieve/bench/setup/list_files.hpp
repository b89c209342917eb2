// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The benchmark's members as files that nft and ipset read, and what these sets take in the kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

// A hash:ip set `name` for `ipset restore`. It starts with all buckets, so that it need not grow.
[[nodiscard]] Status write_ipset(const std::string& path, const std::string& name,
                                 std::span<const std::uint32_t> addresses);

// A table `table` with a set `members` for `nft -f`. The set cannot change and its size is declared, so that
// the kernel chooses a hash table of fixed size, its fastest.
[[nodiscard]] Status write_nft(const std::string& path, const std::string& table,
                               std::span<const std::uint32_t> addresses);

// The memory that `ipset list` gives for a set, in bytes. `scratch` is a file that may be overwritten.
[[nodiscard]] Result<std::uint64_t> ipset_bytes(const std::string& name, const std::string& scratch);

// The memory that the kernel has allocated for itself, in bytes: the sum of the lines Slab, VmallocUsed and
// Percpu of /proc/meminfo.
[[nodiscard]] std::uint64_t kernel_memory();
inline constexpr const char* kernel_memory_lines = "growth of Slab, VmallocUsed and Percpu";

} // namespace sieve::bench
