// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/filter_header.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel {

Result<FilterHandle> open_live_filter(std::uint32_t map_id) {
    UniqueFd fd(bpf_map_get_fd_by_id(map_id));
    if (!fd) return refusal(fmt::format("opening BPF map {}", map_id), errno);
    bpf_map_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd.get(), &info, &length); error != 0)
        return refusal(fmt::format("asking for the size of BPF map {}", map_id), error);
    if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(sieve_line) ||
        info.max_entries < SIEVE_FIRST_LINE)
        return kernel_refused(fmt::format("BPF map {} is in the table of sets but is no filter", map_id));
    return FilterHandle{.fd = std::move(fd), .lines = info.max_entries};
}

Result<FilterHeader> read_filter_header(std::uint32_t map_id) {
    SIEVE_ASSIGN(const FilterHandle map, open_live_filter(map_id));
    sieve_line lines[SIEVE_FIRST_LINE];
    for (std::uint32_t line = 0; line < SIEVE_FIRST_LINE; line++)
        if (const int error = bpf_map_lookup_elem(map.fd.get(), &line, &lines[line]); error != 0)
            return refusal(fmt::format("reading BPF map {}", map_id), error);
    FilterHeader filter;
    std::memcpy(&filter.lookup, &lines[0], sizeof(filter.lookup));
    std::memcpy(&filter.file, &lines[SIEVE_FILE_LINE], sizeof(filter.file));
    filter.bytes = std::uint64_t{map.lines} * sizeof(sieve_line);
    return filter;
}

} // namespace sieve::kernel
