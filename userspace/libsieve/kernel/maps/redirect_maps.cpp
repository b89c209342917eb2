// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/redirect_maps.hpp"

#include <net/if.h>

#include <cerrno>
#include <charconv>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/host/device.hpp"
#include "libsieve/kernel/host/interface.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/small_file.hpp"

namespace sieve::kernel {

namespace {

constexpr std::string_view cpu_prefix = "cpu:";
constexpr std::size_t longest_cpu_list = 64 << 10;

// Whether a list in sysfs's format, such as "0-3,8", contains the number.
bool in_list(const std::string& list, std::uint32_t number) {
    const char* at = list.data();
    const char* end = at + list.size();
    while (at < end) {
        std::uint32_t first = 0;
        auto parsed = std::from_chars(at, end, first);
        if (parsed.ec != std::errc{}) return false;
        std::uint32_t last = first;
        if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
        if (number >= first && number <= last) return true;
        at = parsed.ptr + 1;
    }
    return false;
}

Result<Target> find_cpu(const std::string& text) {
    const char* begin = text.data() + cpu_prefix.size();
    const char* end = text.data() + text.size();
    std::uint32_t number = 0;
    if (const auto [at, error] = std::from_chars(begin, end, number); error != std::errc{} || at != end)
        return invalid_request(fmt::format("redirect={}: expected cpu: and the CPU's number", text));
    const std::string online = small_file_or_nothing("/sys/devices/system/cpu/online", longest_cpu_list);
    const int possible = libbpf_num_possible_cpus();
    const bool there = online.empty() ? possible > 0 && number < static_cast<std::uint32_t>(possible)
                                      : in_list(online, number);
    if (!there)
        return kernel_refused(fmt::format(
            "redirect={}: this machine has no such CPU online; /sys/devices/system/cpu/online lists them",
            text));
    return Target{SIEVE_ACTION_REDIRECT_CPU, number};
}

Status put(int fd, std::uint32_t key, std::uint32_t value, bool may_be_gone, const char* what) {
    if (const int error = bpf_map_update_elem(fd, &key, &value, BPF_ANY); error != 0 && !may_be_gone)
        return refusal(fmt::format("redirecting to {} {}", what, key), error,
                       "it must be there, and the kernel must be able to redirect there");
    return {};
}

} // namespace

Result<Target> find_target(const std::string& text) {
    if (text.starts_with(cpu_prefix)) return find_cpu(text);
    if (text.empty()) return invalid_request("redirect=: expected an interface, or cpu: and a number");
    SIEVE_ASSIGN(const Interface interface, find_interface(text));
    return Target{SIEVE_ACTION_REDIRECT_DEVICE, interface.index};
}

std::string target_name(const Target& target) {
    if (target.action == SIEVE_ACTION_REDIRECT_CPU) return fmt::format("{}{}", cpu_prefix, target.number);
    char name[IF_NAMESIZE] = "";
    return ::if_indextoname(target.number, name) != nullptr
               ? std::string(name)
               : fmt::format("interface {} (gone)", target.number);
}

TargetState target_state(const Target& target) {
    if (target.action == SIEVE_ACTION_REDIRECT_CPU) {
        return TargetState::ready; // when a CPU goes offline, the kernel hands its queue to another CPU
    }
    char name[IF_NAMESIZE] = "";
    if (::if_indextoname(target.number, name) == nullptr) return TargetState::gone;
    return is_up(target.number) ? TargetState::ready : TargetState::down;
}

const char* target_state_name(TargetState state) {
    switch (state) {
    case TargetState::ready:
        return "ready";
    case TargetState::down:
        return "down";
    case TargetState::gone:
        return "gone";
    }
    return "unknown";
}

Result<UniqueFd> create_device_map(const std::set<std::uint32_t>& indices,
                                   const std::set<std::uint32_t>& before) {
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "sieve_devices", sizeof(std::uint32_t),
                               sizeof(std::uint32_t), SIEVE_MAX_SETS, nullptr));
    if (!fd) return refusal("a BPF map of interfaces to redirect to", errno);
    for (const std::uint32_t index : indices)
        SIEVE_TRY(put(fd.get(), index, index, before.contains(index), "interface"));
    return fd;
}

Result<UniqueFd> create_cpu_map(const std::set<std::uint32_t>& cpus, const std::set<std::uint32_t>& before) {
    const int possible = libbpf_num_possible_cpus();
    if (possible < 0) return refusal("counting the CPUs", possible);
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_CPUMAP, "sieve_cpus", sizeof(std::uint32_t),
                               sizeof(std::uint32_t), static_cast<std::uint32_t>(possible), nullptr));
    if (!fd) return refusal("a BPF map of CPUs to redirect to", errno);
    for (const std::uint32_t cpu : cpus)
        SIEVE_TRY(put(fd.get(), cpu, SIEVE_CPU_QUEUE, before.contains(cpu), "CPU"));
    return fd;
}

} // namespace sieve::kernel
