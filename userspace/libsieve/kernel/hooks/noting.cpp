// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/noting.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <sieve/policy.h>

#include "libsieve/kernel/hooks/tc/attach.hpp"
#include "libsieve/kernel/hooks/tc/filter_change.hpp"
#include "libsieve/kernel/hooks/tc/filters.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "sieve_note.skel.h"

namespace sieve::kernel {

namespace {

constexpr std::size_t log_lines = 8;

struct Destroy {
    void operator()(sieve_note_bpf* skeleton) const { sieve_note_bpf::destroy(skeleton); }
};
using NoteSkeleton = std::unique_ptr<sieve_note_bpf, Destroy>;

// The maps of a noting program.
struct NoteMaps {
    UniqueFd control;
    std::size_t control_bytes = 0;
    UniqueFd flows;
    UniqueFd counts;
};

Result<NoteMaps> maps_of(int program_fd) {
    std::array<std::uint32_t, 16> ids{}; // more than the program has maps
    bpf_prog_info program{};
    program.nr_map_ids = ids.size();
    program.map_ids = reinterpret_cast<std::uintptr_t>(ids.data());
    __u32 length = sizeof(program);
    if (const int error = bpf_obj_get_info_by_fd(program_fd, &program, &length); error != 0)
        return refusal("asking for a noting program's maps", error);
    NoteMaps maps;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(program.nr_map_ids, ids.size()); i++) {
        SIEVE_ASSIGN(UniqueFd fd, open_map(ids[i]));
        bpf_map_info info{};
        length = sizeof(info);
        if (const int error = bpf_obj_get_info_by_fd(fd.get(), &info, &length); error != 0)
            return refusal("asking for the name of a noting program's map", error);
        const std::string_view name = info.name;
        if (name == SIEVE_MAP_NOTE) {
            maps.control = std::move(fd);
            maps.control_bytes = info.value_size;
        }
        if (name == SIEVE_MAP_NAME(flows)) maps.flows = std::move(fd);
        if (name == SIEVE_MAP_NOTE_COUNTS && info.value_size == sizeof(sieve_note_counts))
            maps.counts = std::move(fd);
    }
    return maps;
}

// The control block, whose first word every version has.
Status read_control(const NoteMaps& maps, std::uint32_t& magic, sieve_note_control& control) {
    if (!maps.control) return {};
    std::vector<std::uint8_t> value(maps.control_bytes);
    const std::uint32_t zero = 0;
    if (const int error = bpf_map_lookup_elem(maps.control.get(), &zero, value.data()); error != 0)
        return refusal("reading a noting program's control block", error);
    if (value.size() >= sizeof(magic)) std::memcpy(&magic, value.data(), sizeof(magic));
    if (magic != SIEVE_FLOW_MAGIC) return {};
    if (value.size() != sizeof(control) || !maps.flows || !maps.counts)
        magic ^= 0xffU << 24U; // as good as another version
    else
        std::memcpy(&control, value.data(), sizeof(control));
    return {};
}

Result<sieve_note_counts> read_counts(const NoteMaps& maps) {
    const int cpus = libbpf_num_possible_cpus();
    if (cpus < 0) return refusal("counting the CPUs", cpus);
    std::vector<sieve_note_counts> values(static_cast<std::size_t>(cpus));
    const std::uint32_t zero = 0;
    if (const int error = bpf_map_lookup_elem(maps.counts.get(), &zero, values.data()); error != 0)
        return refusal("reading a noting program's counters", error);
    sieve_note_counts sum{};
    for (const sieve_note_counts& value : values) {
        sum.packets += value.packets;
        sum.begun += value.begun;
        sum.evicted += value.evicted;
        sum.refused += value.refused;
        sum.lost += value.lost;
    }
    return sum;
}

// A filter at an interface's egress hook whose program has the noting program's name.
struct Found {
    TcFilter filter;
    NoteMaps maps;
    std::uint32_t magic = 0;
    sieve_note_control control{};   // only of this version
    std::vector<TcFilter> before{}; // filters that are neither this one nor ours
    [[nodiscard]] bool is_ours() const { return magic == SIEVE_FLOW_MAGIC && filter.direct_action; }
    // Of any version: all but the last byte of the magic number are the same.
    [[nodiscard]] bool is_known() const { return ((magic ^ SIEVE_FLOW_MAGIC) & 0xffffffU) == 0; }
};

Result<std::optional<Found>> find(const Interface& interface) {
    SIEVE_ASSIGN(const std::vector<TcFilter> filters, tc::list_filters(interface, HookPoint::egress));
    std::vector<TcFilter> before;
    for (const TcFilter& filter : filters) {
        const Result<Program> program = open_program(filter.program_id);
        if (program && program->name == SIEVE_PROGRAM_EGRESS) continue;
        before.push_back(filter);
        if (!program || program->name != SIEVE_PROGRAM_NOTE) continue; // or it has gone meanwhile
        SIEVE_ASSIGN(NoteMaps maps, maps_of(program->fd.get()));
        Found found{filter, std::move(maps)};
        SIEVE_TRY(read_control(found.maps, found.magic, found.control));
        if (!found.is_known()) continue; // somebody else's, of the same name
        before.pop_back();
        found.before = std::move(before);
        return found;
    }
    return std::nullopt;
}

using Ports = std::pair<std::uint32_t, std::uint32_t>; // the first one and the last one

// The ports that the kernel gives to sockets that ask for none; its own default if it does not tell.
Ports own_ports() {
    const std::string text = small_file_or_nothing("/proc/sys/net/ipv4/ip_local_port_range", 64);
    unsigned first = 0, last = 0;
    if (std::sscanf(text.c_str(), "%u %u", &first, &last) != 2) return {32768, 60999};
    return {first, last};
}

// Both as the control block has them, where one store changes them together.
std::uint64_t ports_word(const Ports& ports) {
    static_assert(offsetof(sieve_note_control, first_port) % sizeof(std::uint64_t) == 0 &&
                  offsetof(sieve_note_control, last_port) ==
                      offsetof(sieve_note_control, first_port) + sizeof(std::uint32_t));
    const std::uint32_t both[] = {ports.first, ports.second};
    std::uint64_t word = 0;
    std::memcpy(&word, both, sizeof(word));
    return word;
}

Result<Noting> noting_of(const Interface& interface, const Found& found) {
    SIEVE_ASSIGN(const sieve_note_counts counts, read_counts(found.maps));
    return Noting{interface,
                  found.filter,
                  found.control.memory_id,
                  counts,
                  ports_word({found.control.first_port, found.control.last_port}),
                  found.before};
}

Result<NoteSkeleton> load(const Interface& interface) {
    SIEVE_ASSIGN(const sieve_link link, interface_link(interface));
    const LogCapture log;
    NoteSkeleton skeleton(sieve_note_bpf::open());
    if (!skeleton) return refusal("opening the noting program", errno);
    // libbpf 1.1 does not know the section name tc/egress.
    bpf_program__set_type(skeleton->progs.sieve_note, BPF_PROG_TYPE_SCHED_CLS);
    volatile sieve_note_control& control = skeleton->data_note->sieve_note_control;
    control.link = link;
    if (const int error = sieve_note_bpf::load(skeleton.get()); error != 0)
        return refusal("loading the noting program", error, log.verifier_log(log_lines));
    return skeleton;
}

Status give_memory(int flows_fd, int control_fd, const FlowMemory& memory) {
    const std::uint32_t zero = 0;
    const int inner = memory.fd();
    sieve_note_control control{};
    int error = bpf_map_lookup_elem(control_fd, &zero, &control);
    control.memory_id = memory.id();
    control.flows = memory.where();
    std::tie(control.first_port, control.last_port) = own_ports();
    if (error == 0) error = bpf_map_update_elem(control_fd, &zero, &control, BPF_ANY);
    if (error != 0) return refusal("writing the noting program's control block", error);
    error = bpf_map_update_elem(flows_fd, &zero, &inner, BPF_ANY);
    return error == 0 ? Status() : Status(refusal("giving the flow memory to the noting program", error));
}

} // namespace

Result<std::optional<Noting>> read_noting(const Interface& interface) {
    SIEVE_ASSIGN(const std::optional<Found> found, find(interface));
    if (!found) return std::nullopt;
    if (!found->is_ours())
        return failure(ErrorKind::other_version,
                       fmt::format("{}: the program that notes flows (id {}) is of another version",
                                   interface.name, found->filter.program_id),
                       {.interface = interface.name});
    return noting_of(interface, *found);
}

std::vector<Noting> all_notings() {
    std::vector<Noting> notings;
    for (const Interface& interface : all_interfaces())
        if (auto noting = read_noting(interface); noting && *noting) notings.push_back(std::move(**noting));
    return notings;
}

Result<Noting> attach_noting(const Interface& interface, const FlowMemory& memory) {
    const std::string what = fmt::format("noting flows at {}'s egress hook", interface.name);
    SIEVE_ASSIGN(const std::optional<Found> before, find(interface));
    if (before && before->is_ours()) {
        SIEVE_TRY(give_memory(before->maps.flows.get(), before->maps.control.get(), memory));
        SIEVE_ASSIGN(const std::optional<Noting> now, read_noting(interface));
        if (!now) return kernel_refused(what + ": the program has been taken off meanwhile");
        return *now;
    }
    SIEVE_ASSIGN(const NoteSkeleton skeleton, load(interface));
    SIEVE_TRY(
        give_memory(bpf_map__fd(skeleton->maps.sieve_flows), bpf_map__fd(skeleton->maps.data_note), memory));
    const int program_fd = bpf_program__fd(skeleton->progs.sieve_note);
    SIEVE_ASSIGN(const std::uint32_t id, program_id(program_fd));
    tc::NewFilter filter{
        .program_fd = program_fd, .priority = noting_priority, .handle = tc::our_handle, .replace = false};
    if (before) { // of another version
        filter.priority = before->filter.priority;
        filter.handle = before->filter.handle;
        filter.replace = true;
    }
    const int error = tc::add_filter(interface, HookPoint::egress, filter);
    const auto now = without_throwing([&] { return read_noting(interface); });
    if (!now)
        return error == 0 ? unfinished(what + " began, but reading the hook again failed", now.error())
                          : outcome_unknown(what, now.error());
    if (*now && (*now)->filter.program_id == id) return **now;
    if (error != 0) return refusal(what, error, tc::add_filter_remedy(error, filter.priority));
    return kernel_refused(what + ": the program has been taken off meanwhile");
}

void tell_own_ports(const Noting& noting) {
    const std::uint64_t ports = ports_word(own_ports());
    if (ports == noting.own_ports) return;
    const Result<Program> program = open_program(noting.filter.program_id);
    if (!program) return;
    const Result<NoteMaps> maps = maps_of(program->fd.get());
    if (!maps || maps->control_bytes != sizeof(sieve_note_control)) return;
    // Not by an update of the whole value: another process may give the program a memory meanwhile.
    const std::size_t bytes = sizeof(sieve_note_control);
    void* const control = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, maps->control.get(), 0);
    if (control == MAP_FAILED) return;
    auto& word = *reinterpret_cast<std::uint64_t*>(static_cast<char*>(control) +
                                                   offsetof(sieve_note_control, first_port));
    std::atomic_ref<std::uint64_t>(word).store(ports);
    ::munmap(control, bytes);
}

Status detach_noting(const Interface& interface) {
    SIEVE_ASSIGN(const std::optional<Found> found, find(interface));
    if (!found) return {};
    return tc::remove_filter(interface, HookPoint::egress, found->filter,
                             fmt::format("detaching the noting program from {}", interface.name));
}

} // namespace sieve::kernel
