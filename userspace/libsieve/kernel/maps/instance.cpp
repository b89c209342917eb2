// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/instance.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel {

namespace {

std::size_t control_bytes() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (sizeof(sieve_control) + page - 1) / page * page;
}

Result<bpf_map_info> map_info(int fd) {
    bpf_map_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd, &info, &length); error != 0)
        return refusal("asking for a BPF map's properties", error);
    return info;
}

// The two words that every version of the control block begins with.
struct Stamp {
    std::uint32_t magic = 0;
    std::uint32_t abi = 0;
};

// Reads the stamp of a map that may be our control map.
Result<Stamp> read_stamp(int fd, const bpf_map_info& info) {
    std::vector<std::uint8_t> value(info.value_size);
    const std::uint32_t zero = 0;
    Stamp stamp;
    if (info.value_size < sizeof(stamp)) return stamp;
    if (const int error = bpf_map_lookup_elem(fd, &zero, value.data()); error != 0)
        return refusal(fmt::format("reading BPF map {}", info.id), error);
    __builtin_memcpy(&stamp, value.data(), sizeof(stamp));
    return stamp;
}

bool has_name(const bpf_map_info& info, std::string_view name) {
    return std::string_view(info.name) == name;
}

} // namespace

Instance::Instance(Instance&& other) noexcept
    : control_(std::exchange(other.control_, nullptr)), control_fd_(std::move(other.control_fd_)),
      sets_(std::move(other.sets_)), stats_(std::move(other.stats_)), rare_(other.rare_) {}

Instance& Instance::operator=(Instance&& other) noexcept {
    std::swap(control_, other.control_);
    std::swap(control_fd_, other.control_fd_);
    std::swap(sets_, other.sets_);
    std::swap(stats_, other.stats_);
    std::swap(rare_, other.rare_);
    return *this;
}

Instance::~Instance() {
    if (control_ != nullptr) ::munmap(const_cast<sieve_control*>(control_), control_bytes());
}

Result<UniqueFd> open_map(std::uint32_t id) {
    UniqueFd fd(bpf_map_get_fd_by_id(id));
    if (!fd) return refusal(fmt::format("opening BPF map {}", id), errno);
    return fd;
}

Result<std::uint32_t> map_id(int fd) {
    SIEVE_ASSIGN(const bpf_map_info info, map_info(fd));
    return info.id;
}

Result<Instance> Instance::from_maps(UniqueFd control, UniqueFd sets, UniqueFd stats, const RareMaps& rare) {
    SIEVE_ASSIGN(const bpf_map_info control_info, map_info(control.get()));
    SIEVE_ASSIGN(const bpf_map_info sets_info, map_info(sets.get()));
    SIEVE_ASSIGN(const bpf_map_info stats_info, map_info(stats.get()));
    // The ABI number implies this layout. A program built from an unfinished tree may still differ.
    if (control_info.value_size != sizeof(sieve_control) ||
        sets_info.max_entries != SIEVE_BANKS * SIEVE_SLOTS || stats_info.value_size != sizeof(sieve_stats))
        return failure(ErrorKind::other_version,
                       "the program's maps do not have the layout that this xdp-sieve expects");
    void* pages = ::mmap(nullptr, control_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, control.get(), 0);
    if (pages == MAP_FAILED && errno == EINVAL)
        return failure(ErrorKind::other_version,
                       "the program's control block cannot be mapped; its loader must create it with "
                       "BPF_F_MMAPABLE, as libbpf does");
    if (pages == MAP_FAILED) return refusal("mapping the program's control block", errno);
    return Instance(static_cast<volatile sieve_control*>(pages), std::move(control), std::move(sets),
                    std::move(stats), rare);
}

Result<std::optional<Instance>> Instance::from_program(int program_fd) {
    std::vector<std::uint32_t> ids(64); // more than our program has maps
    bpf_prog_info program{};
    program.nr_map_ids = static_cast<std::uint32_t>(ids.size());
    program.map_ids = reinterpret_cast<std::uintptr_t>(ids.data());
    __u32 length = sizeof(program);
    if (const int error = bpf_obj_get_info_by_fd(program_fd, &program, &length); error != 0)
        return refusal("asking for a program's maps", error);
    if (program.nr_map_ids > ids.size()) return std::nullopt;
    ids.resize(program.nr_map_ids);

    UniqueFd control, sets, stats;
    RareMaps rare;
    for (const std::uint32_t id : ids) {
        SIEVE_ASSIGN(UniqueFd fd, open_map(id));
        SIEVE_ASSIGN(const bpf_map_info info, map_info(fd.get()));
        if (has_name(info, SIEVE_MAP_CONTROL)) {
            SIEVE_ASSIGN(const Stamp stamp, read_stamp(fd.get(), info));
            if (stamp.magic != SIEVE_MAGIC) return std::nullopt;
            if (stamp.abi != SIEVE_ABI)
                return failure(
                    ErrorKind::other_version,
                    fmt::format("the attached xdp-sieve program speaks version {} of the control block, this "
                                "xdp-sieve speaks version {}",
                                stamp.abi, SIEVE_ABI));
            control = std::move(fd);
        }
#define TAKE_OPEN(map) else if (has_name(info, SIEVE_MAP_NAME(map))) map = std::move(fd);
#define TAKE_ID(map) else if (has_name(info, SIEVE_MAP_NAME(map))) rare.map = id;
        SIEVE_OPEN_MAPS(TAKE_OPEN)
        SIEVE_RARE_MAPS(TAKE_ID)
#undef TAKE_OPEN
#undef TAKE_ID
    }
    if (!control || !sets || !stats) return std::nullopt;
    SIEVE_ASSIGN(Instance instance, from_maps(std::move(control), std::move(sets), std::move(stats), rare));
    return instance;
}

} // namespace sieve::kernel
