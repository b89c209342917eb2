// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/peers.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <vector>

#include <bpf/bpf.h>

#include "bpf/bench/bench_control.h"
#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::bench {

namespace {

constexpr std::size_t batch = 65536;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Key>
Result<double> fill(int map, std::span<const Key> keys) {
    const std::vector<std::uint8_t> values(std::min(batch, keys.size()), 1);
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t done = 0; done < keys.size();) {
        auto count = static_cast<std::uint32_t>(std::min(batch, keys.size() - done));
        LIBBPF_OPTS(bpf_map_batch_opts, options);
        if (bpf_map_update_batch(map, keys.data() + done, values.data(), &count, &options) != 0)
            return kernel::refusal("filling a kernel map to compare with", errno);
        done += count;
    }
    return seconds_since(start);
}

} // namespace

Result<double> fill_hash(int map, std::span<const std::uint32_t> addresses) {
    return fill(map, addresses);
}

Result<double> fill_lpm(int map, std::span<const std::uint32_t> addresses) {
    std::vector<bench_prefix> prefixes;
    prefixes.reserve(addresses.size());
    for (const std::uint32_t address : addresses)
        prefixes.push_back({.length = 32, .address = htonl(address)});
    return fill(map, std::span<const bench_prefix>(prefixes));
}

Result<double> fill_prefixes(int map, std::span<const bench_prefix> prefixes) {
    return fill(map, prefixes);
}

Result<double> fill_prefixes(int map, std::span<const bench_prefix6> prefixes) {
    return fill(map, prefixes);
}

Result<double> fill_bloom(int map, std::span<const std::uint32_t> addresses) {
    const auto start = std::chrono::steady_clock::now();
    for (const std::uint32_t address : addresses)
        if (bpf_map_update_elem(map, nullptr, &address, BPF_ANY) != 0)
            return kernel::refusal("filling a kernel Bloom map to compare with", errno);
    return seconds_since(start);
}

} // namespace sieve::bench
