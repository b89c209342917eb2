// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/grace_period.hpp"

#include <cerrno>
#include <cstdint>

#include <bpf/bpf.h>

#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

Status grace_period() {
    const UniqueFd inner(bpf_map_create(BPF_MAP_TYPE_ARRAY, "sieve_grace", 4, 4, 1, nullptr));
    if (!inner) return refusal("a small BPF map to wait with", errno);
    LIBBPF_OPTS(bpf_map_create_opts, options);
    options.inner_map_fd = static_cast<std::uint32_t>(inner.get());
    const UniqueFd outer(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "sieve_grace", 4, 4, 1, &options));
    if (!outer) return refusal("a small BPF map to wait with", errno);
    const std::uint32_t zero = 0;
    const std::int32_t value = inner.get();
    if (const int error = bpf_map_update_elem(outer.get(), &zero, &value, BPF_ANY); error != 0)
        return refusal("waiting for the packets under way", error);
    return {};
}

} // namespace sieve::kernel
