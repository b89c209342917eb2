// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/filter_map.hpp"

#include <sys/mman.h>

#include <cctype>
#include <cerrno>
#include <cstring>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel {

std::string map_name(const std::string& name) {
    std::string result = name.substr(0, BPF_OBJ_NAME_LEN - 1);
    for (char& c : result)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') c = '_';
    return result;
}

UniqueFd create_line_array(const char* name, std::uint32_t lines) {
    LIBBPF_OPTS(bpf_map_create_opts, options);
    options.map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP;
    return UniqueFd(
        bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(std::uint32_t), sizeof(sieve_line), lines, &options));
}

Result<FilterMap> FilterMap::create(const Image& image, const std::string& name) {
    return create(image.lines(), name);
}

Result<FilterMap> FilterMap::create(std::span<const sieve_line> lines, const std::string& name) {
    const std::size_t bytes = lines.size_bytes();
    UniqueFd fd = create_line_array(map_name(name).c_str(), static_cast<std::uint32_t>(lines.size()));
    if (!fd) return refusal(fmt::format("a BPF map of {} KiB for set {}", (bytes + 1023) >> 10, name), errno);

    void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (pages == MAP_FAILED) return refusal(fmt::format("mapping the BPF map of set {}", name), errno);
    std::memcpy(pages, lines.data(), bytes);
    ::munmap(pages, bytes);

    bpf_map_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd.get(), &info, &length); error != 0)
        return refusal(fmt::format("asking for the identity of the BPF map of set {}", name), error);
    return FilterMap(std::move(fd), info.id);
}

} // namespace sieve::kernel
