// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/bpf_object.hpp"

#include <fcntl.h>
#include <sys/utsname.h>

#include <cerrno>
#include <future>
#include <optional>

#include <fmt/core.h>

#include "libsieve/kernel/filter_places.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/refusal.hpp"
#include "xdp_sieve.skel.h"

namespace sieve::kernel {

namespace {

constexpr std::size_t log_lines = 8;

std::string kernel_release() {
    utsname name{};
    return ::uname(&name) == 0 ? name.release : "unknown";
}

tl::unexpected<Error> load_refusal(int error, const LogCapture& log) {
    const std::string verifier = log.verifier_log(log_lines);
    if (verifier.empty()) return refusal("loading the XDP program", error);
    // The verifier's errno values say little (EACCES is a bad memory access); its log says it all.
    return refusal(
        "loading the XDP program", error,
        fmt::format("the verifier of this kernel ({}) refuses it, please report it; its log ends in:\n{}",
                    kernel_release(), verifier));
}

UniqueFd duplicate(int fd) {
    return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

} // namespace

void BpfObject::Destroy::operator()(xdp_sieve_bpf* skeleton) const {
    xdp_sieve_bpf::destroy(skeleton);
}

Result<BpfObject::Loaded> BpfObject::load_skeleton(bool tracing, bool frags, const Fill& fill) {
    const LogCapture log;
    Skeleton skeleton(xdp_sieve_bpf::open());
    if (!skeleton) return load_refusal(errno, log);
    // The variable is read-only for the program; before loading it is ours to set.
    const_cast<std::uint32_t&>(static_cast<const volatile std::uint32_t&>(skeleton->rodata->sieve_tracing)) =
        tracing ? 1 : 0;
    bpf_program__set_autoload(skeleton->progs.xdp_sieve_frags, frags);
    std::future<Result<Filling>> filled;
    if (fill) {
        SIEVE_ASSIGN(const UniqueFd table, create_filter_table());
        if (const int error = bpf_map__reuse_fd(skeleton->maps.sieve_sets, table.get()); error != 0)
            return load_refusal(error, log);
        // libbpf has a descriptor of its own, which lives as long as the skeleton.
        filled = std::async(std::launch::async, fill, bpf_map__fd(skeleton->maps.sieve_sets));
    }
    const int error = xdp_sieve_bpf::load(skeleton.get());
    Filling filling; // behind the skeleton: its end waits for what it does with the table
    if (filled.valid()) {
        SIEVE_ASSIGN(filling, filled.get());
    }
    if (error != 0) return load_refusal(error, log);
    return Loaded{std::move(skeleton), std::move(filling)};
}

Result<BpfObject> BpfObject::load(const Options& options) {
    std::optional<Result<std::vector<int>>> filters; // not made before they are asked for
    Fill fill;
    if (options.filters)
        fill = [&](int table_fd) -> Result<Filling> {
            if (!filters) filters = options.filters();
            if (!*filters) return tl::unexpected(filters->error());
            return begin_to_fill_both_banks(table_fd, **filters);
        };
    Result<Loaded> loaded = load_skeleton(options.tracing, options.frags, fill);
    // Before Linux 5.18 there are no multi-buffer programs; whoever then needs one learns it when attaching.
    if (!loaded && options.frags && (!filters || *filters))
        loaded = load_skeleton(options.tracing, false, fill);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    const auto& maps = loaded->skeleton->maps;
    RareMaps rare;
    for (auto [id, map] :
         {std::pair{&rare.exact, maps.sieve_exact}, std::pair{&rare.devices, maps.sieve_devices},
          std::pair{&rare.cpus, maps.sieve_cpus}, std::pair{&rare.events, maps.sieve_events},
          std::pair{&rare.sketches, maps.sieve_sketches}}) {
        SIEVE_ASSIGN(*id, map_id(bpf_map__fd(map)));
    }
    SIEVE_ASSIGN(Instance instance, Instance::from_maps(duplicate(bpf_map__fd(maps.data_sieve)),
                                                        duplicate(bpf_map__fd(maps.sieve_sets)),
                                                        duplicate(bpf_map__fd(maps.sieve_stats)), rare));
    return BpfObject(std::move(*loaded), std::move(instance));
}

Status BpfObject::settle() {
    return filling_.valid() ? filling_.get() : Status();
}

Result<BpfObject> BpfObject::open_copy(bool frags) const {
    const LogCapture log;
    Skeleton copy(xdp_sieve_bpf::open());
    if (!copy) return load_refusal(errno, log);
    bpf_program__set_autoload(copy->progs.xdp_sieve, !frags);
    bpf_program__set_autoload(copy->progs.xdp_sieve_frags, frags);
    const auto& to = copy->maps;
    const auto& from = skeleton_->maps;
    for (const auto& [map, original] :
         {std::pair{to.data_sieve, from.data_sieve}, std::pair{to.sieve_sets, from.sieve_sets},
          std::pair{to.sieve_stats, from.sieve_stats}, std::pair{to.sieve_devices, from.sieve_devices},
          std::pair{to.sieve_cpus, from.sieve_cpus}, std::pair{to.sieve_exact, from.sieve_exact},
          std::pair{to.sieve_events, from.sieve_events}, std::pair{to.sieve_sketches, from.sieve_sketches}})
        if (const int error = bpf_map__reuse_fd(map, bpf_map__fd(original)); error != 0)
            return load_refusal(error, log);
    SIEVE_ASSIGN(Instance instance,
                 Instance::from_maps(duplicate(instance_.control_fd()), duplicate(instance_.sets_fd()),
                                     duplicate(instance_.stats_fd()), instance_.rare()));
    return BpfObject({std::move(copy), Filling()}, std::move(instance));
}

int BpfObject::program_fd() const {
    return bpf_program__fd(skeleton_->progs.xdp_sieve);
}

int BpfObject::frags_program_fd() const {
    const int fd = bpf_program__fd(skeleton_->progs.xdp_sieve_frags);
    return fd < 0 ? -1 : fd;
}

const volatile sieve_trace& BpfObject::trace() const {
    return skeleton_->bss->sieve_trace_last;
}

bpf_object* BpfObject::object() const {
    return skeleton_->obj;
}

} // namespace sieve::kernel
