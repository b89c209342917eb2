// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The addresses that the benchmark's sets hold; see bpf/bench/bench_control.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

// The members of a set of `keys` keys, in host order.
[[nodiscard]] std::vector<std::uint32_t> member_addresses(std::uint64_t keys);

// The same as flow keys of the source address.
[[nodiscard]] KeySet member_keys(std::uint64_t keys);

// The image of these members as lists of addresses are built: kind `exact`.
[[nodiscard]] Result<BuiltSet> build_exact_set(std::uint64_t keys, const Progress& progress);

// Writes each address as text between `before` and `after`.
[[nodiscard]] Status write_addresses(const std::filesystem::path& path,
                                     std::span<const std::uint32_t> addresses, const std::string& head,
                                     const std::string& before, const std::string& after,
                                     const std::string& tail);

} // namespace sieve::bench
