// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/map_indices.hpp"

#include <cerrno>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

namespace {

constexpr int not_supported = 524; // ENOTSUPP: internal to the kernel, so no user-space header defines it

} // namespace

MapChange change_of(std::uint32_t first, std::span<const std::uint32_t> present,
                    std::span<const std::uint32_t> target) {
    MapChange change;
    for (std::uint32_t i = 0; i < target.size(); i++) {
        if (!present.empty() && present[i] == target[i]) continue;
        if (target[i] == 0) {
            change.gone.push_back(first + i);
        } else {
            change.indices.push_back(first + i);
            change.ids.push_back(target[i]);
        }
    }
    return change;
}

Status put_maps(int outer_fd, const MapChange& change) {
    if (change.indices.empty()) return {};
    std::vector<UniqueFd> fds;
    std::vector<std::int32_t> maps;
    for (const std::uint32_t id : change.ids) {
        fds.emplace_back(bpf_map_get_fd_by_id(id));
        if (!fds.back()) return refusal(fmt::format("opening BPF map {}", id), errno);
        maps.push_back(fds.back().get());
    }
    LIBBPF_OPTS(bpf_map_batch_opts, options);
    auto count = static_cast<std::uint32_t>(change.indices.size());
    int error = bpf_map_update_batch(outer_fd, change.indices.data(), maps.data(), &count, &options);
    if (error != 0 && (errno == ENOTSUP || errno == EINVAL || errno == not_supported)) {
        error = 0;
        for (std::size_t i = 0; i < maps.size() && error == 0; i++)
            error = bpf_map_update_elem(outer_fd, &change.indices[i], &maps[i], BPF_ANY);
    }
    if (error != 0)
        return refusal("putting a filter into the program's table of sets", error,
                       "the kernel must know BPF_F_INNER_MAP (Linux 5.10)");
    return {};
}

Status clear_map(int outer_fd, std::uint32_t index) {
    if (const int error = bpf_map_delete_elem(outer_fd, &index); error != 0 && errno != ENOENT)
        return refusal("clearing an index of the program's table of sets", error);
    return {};
}

} // namespace sieve::kernel
