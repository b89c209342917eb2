// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/bank_filters.hpp"

#include <cassert>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include <bpf/bpf.h>

#include <sieve/policy.h>

#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/kernel/maps/map_indices.hpp"

namespace sieve::kernel {

Result<UniqueFd> create_filter_table() {
    // The inner map made here sets only the type. The kernel accepts arrays of any size in its place later.
    const UniqueFd line = create_line_array("sieve_line", 1);
    if (!line) return refusal("a BPF map of one line", errno);
    LIBBPF_OPTS(bpf_map_create_opts, options);
    options.inner_map_fd = static_cast<std::uint32_t>(line.get());
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, SIEVE_MAP_NAME(sets), sizeof(std::uint32_t),
                               sizeof(std::uint32_t), SIEVE_BANKS * SIEVE_SLOTS, &options));
    if (!fd) return refusal("the BPF map that holds the sets", errno);
    return fd;
}

namespace {

Result<MapChange> change_of_both_banks(std::span<const int> filters) {
    assert(filters.size() <= SIEVE_SLOTS);
    std::vector<std::uint32_t> ids;
    for (const int filter : filters) {
        ids.push_back(0);
        if (filter < 0) continue;
        SIEVE_ASSIGN(ids.back(), map_id(filter));
    }
    MapChange change;
    for (std::uint32_t bank = 0; bank < SIEVE_BANKS; bank++)
        for (std::uint32_t slot = 0; slot < ids.size(); slot++) {
            if (ids[slot] == 0) continue;
            change.indices.push_back(bank * SIEVE_SLOTS + slot);
            change.ids.push_back(ids[slot]);
        }
    return change;
}

} // namespace

Status fill_both_banks(int table_fd, std::span<const int> filters) {
    SIEVE_ASSIGN(const MapChange change, change_of_both_banks(filters));
    return put_maps(table_fd, change);
}

Result<std::future<Status>> begin_to_fill_both_banks(UniqueFd table, std::span<const int> filters) {
    SIEVE_ASSIGN(const MapChange change, change_of_both_banks(filters));
    if (change.indices.empty()) return std::future<Status>();
    const std::uint32_t last = change.indices.back(), last_id = change.ids.back();
    const auto shared = std::make_shared<UniqueFd>(std::move(table));
    std::future<Status> putting =
        std::async(std::launch::async, [shared, change] { return put_maps(shared->get(), change); });
    for (;;) {
        // put_maps() fills the indices in order, so the last index shows when all are filled. The call itself
        // returns only after the grace period.
        std::uint32_t id = 0;
        if (bpf_map_lookup_elem(shared->get(), &last, &id) == 0 && id == last_id) return putting;
        if (putting.wait_for(std::chrono::microseconds(50)) != std::future_status::ready) continue;
        SIEVE_TRY(putting.get());
        return std::future<Status>();
    }
}

} // namespace sieve::kernel
