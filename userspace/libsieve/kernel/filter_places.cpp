// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/filter_places.hpp"

#include <cassert>
#include <cerrno>

#include <bpf/bpf.h>

#include <sieve/policy.h>

#include "libsieve/kernel/filter_map.hpp"
#include "libsieve/kernel/instance.hpp"
#include "libsieve/kernel/map_places.hpp"
#include "libsieve/kernel/refusal.hpp"

namespace sieve::kernel {

Result<UniqueFd> create_filter_table() {
    // Filters of any size may stand where one of their kind did when the table was made.
    const UniqueFd line = create_line_array("sieve_line", 1);
    if (!line) return refusal("a BPF map of one line", errno);
    LIBBPF_OPTS(bpf_map_create_opts, options);
    options.inner_map_fd = static_cast<std::uint32_t>(line.get());
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, SIEVE_MAP_SETS, sizeof(std::uint32_t),
                               sizeof(std::uint32_t), SIEVE_BANKS * SIEVE_SLOTS, &options));
    if (!fd) return refusal("the BPF map that holds the sets", errno);
    return fd;
}

Status fill_both_banks(int table_fd, std::span<const int> filters) {
    assert(filters.size() <= SIEVE_SLOTS);
    std::vector<std::uint32_t> ids;
    for (const int filter : filters) {
        ids.push_back(0);
        if (filter < 0) continue;
        SIEVE_ASSIGN(ids.back(), map_id(filter));
    }
    PlaceChange change;
    for (std::uint32_t bank = 0; bank < SIEVE_BANKS; bank++)
        for (std::uint32_t slot = 0; slot < ids.size(); slot++) {
            if (ids[slot] == 0) continue;
            change.places.push_back(bank * SIEVE_SLOTS + slot);
            change.ids.push_back(ids[slot]);
        }
    return put_maps(table_fd, change);
}

} // namespace sieve::kernel
