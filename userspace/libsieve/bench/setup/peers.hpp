// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fills the kernel's own sets, each in the fastest way that it offers.
#pragma once

#include <cstdint>
#include <span>

#include "libsieve/util/results/result.hpp"

struct bench_prefix;
struct bench_prefix6;

namespace sieve::bench {

// Prefixes in the form of the kernel's trie (bpf/bench/bench_control.h). Returns the seconds it took.
Result<double> fill_prefixes(int map, std::span<const bench_prefix> prefixes);
Result<double> fill_prefixes(int map, std::span<const bench_prefix6> prefixes);

// Each returns the seconds it took. Keys are IPv4 addresses in host order.
Result<double> fill_hash(int map, std::span<const std::uint32_t> addresses); // BPF_MAP_UPDATE_BATCH
Result<double> fill_lpm(int map, std::span<const std::uint32_t> addresses);  // as /32 prefixes, likewise
Result<double> fill_bloom(int map,
                          std::span<const std::uint32_t> addresses); // one by one, since it has no batches

} // namespace sieve::bench
