// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/exact_map.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <vector>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/filter_map.hpp"
#include "libsieve/kernel/instance.hpp"
#include "libsieve/kernel/refusal.hpp"

namespace sieve::kernel {

namespace {

// The number of keys that one system call passes to the kernel.
constexpr std::size_t batch_keys = std::size_t{1} << 16;

constexpr std::uint64_t element_bytes = 48 + sizeof(sieve_key) + sizeof(std::uint64_t);
constexpr std::uint64_t bucket_bytes = 16;

} // namespace

std::uint64_t exact_map_bytes(std::uint64_t keys) {
    return keys * element_bytes + std::bit_ceil(keys) * bucket_bytes;
}

std::uint64_t ExactMap::bytes() const {
    return exact_map_bytes(keys_);
}

Result<ExactMap> ExactMap::create(std::span<const sieve_key> keys, const std::string& name,
                                  std::uint64_t room) {
    const std::uint64_t most = keys.size() + room;
    const std::string what = fmt::format("a BPF hash map of {} keys ({} MiB) to verify set {} with", most,
                                         exact_map_bytes(most) >> 20, name);
    if (most > std::numeric_limits<std::uint32_t>::max()) return refusal(what, E2BIG);
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_HASH, map_name(name).c_str(), sizeof(sieve_key),
                               sizeof(sieve_exact_value), static_cast<std::uint32_t>(most), nullptr));
    if (!fd) return refusal(what, errno);
    const std::vector<sieve_exact_value> values(std::min(batch_keys, keys.size()));
    LIBBPF_OPTS(bpf_map_batch_opts, options);
    for (std::size_t at = 0; at < keys.size();) {
        auto count = static_cast<std::uint32_t>(std::min(batch_keys, keys.size() - at));
        if (const int error =
                bpf_map_update_batch(fd.get(), keys.data() + at, values.data(), &count, &options);
            error != 0)
            return refusal("filling " + what, error);
        at += count;
    }
    SIEVE_ASSIGN(const std::uint32_t id, map_id(fd.get()));
    return ExactMap(std::move(fd), id, most);
}

Result<std::uint64_t> read_exact_keys(std::uint32_t map_id) {
    SIEVE_ASSIGN(const UniqueFd fd, open_map(map_id));
    bpf_map_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd.get(), &info, &length); error != 0)
        return refusal(fmt::format("asking for the size of BPF map {}", map_id), error);
    return info.max_entries;
}

} // namespace sieve::kernel
