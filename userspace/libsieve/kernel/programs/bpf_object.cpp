// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/programs/bpf_object.hpp"

#include <fcntl.h>
#include <sys/utsname.h>

#include <cerrno>
#include <future>
#include <optional>

#include <fmt/core.h>

#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/bank_filters.hpp"

namespace sieve::kernel {

namespace {

constexpr std::size_t log_lines = 8;

std::string kernel_release() {
    utsname name{};
    return ::uname(&name) == 0 ? name.release : "unknown";
}

tl::unexpected<Error> load_refusal(int error, const LogCapture& log) {
    const std::string verifier = log.verifier_log(log_lines);
    if (verifier.empty()) return refusal("loading the program", error);
    // The verifier's errno values say little (EACCES is a bad memory access). Its log tells what is wrong.
    return refusal(
        "loading the program", error,
        fmt::format("the verifier of this kernel ({}) refuses it, please report it; its log ends in:\n{}",
                    kernel_release(), verifier));
}

UniqueFd duplicate(int fd) {
    return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

} // namespace

Result<BpfObject::Loaded> BpfObject::load_skeleton(const Options& options, bool frags, const Fill& fill) {
    const LogCapture log;
    std::unique_ptr<Skeleton> skeleton = open_skeleton(options.point, frags);
    if (!skeleton) return load_refusal(errno, log);
    skeleton->set_tracing(options.tracing);
    std::future<Result<Filling>> filled;
    if (fill) {
        SIEVE_ASSIGN(const UniqueFd table, create_filter_table());
        bpf_map* const sets = skeleton->map(SIEVE_MAP_NAME(sets));
        if (const int error = bpf_map__reuse_fd(sets, table.get()); error != 0)
            return load_refusal(error, log);
        // A descriptor of its own: libbpf closes the skeleton's when loading fails, while the table is being
        // filled.
        UniqueFd own = duplicate(table.get());
        if (!own) return refusal("a file descriptor for the table of sets", errno);
        filled = std::async(std::launch::async, fill, std::move(own));
    }
    const int error = skeleton->load();
    Filling filling; // declared after the skeleton: its destructor waits for the work on the table
    if (filled.valid()) {
        SIEVE_ASSIGN(filling, filled.get());
    }
    if (error != 0) return load_refusal(error, log);
    return Loaded{std::move(skeleton), std::move(filling)};
}

Result<BpfObject> BpfObject::load(const Options& options) {
    std::optional<Result<std::vector<int>>> filters; // made at the first request
    Fill fill;
    if (options.filters)
        fill = [&](UniqueFd table) -> Result<Filling> {
            if (!filters) filters = options.filters();
            if (!*filters) return tl::unexpected(filters->error());
            return begin_to_fill_both_banks(std::move(table), **filters);
        };
    Result<Loaded> loaded = load_skeleton(options, options.frags, fill);
    // Linux before 5.18 has no multi-buffer programs. Load without one; if it is needed, attaching will say
    // so.
    if (!loaded && options.frags && (!filters || *filters)) loaded = load_skeleton(options, false, fill);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    // From libbpf 1.4 on, a map that was not created has a descriptor, too, of something else.
    const auto map_fd = [&](const char* name) {
        const bpf_map* const map = loaded->skeleton->map(name);
        return map != nullptr && bpf_map__autocreate(map) ? bpf_map__fd(map) : -1;
    };
    RareMaps rare;
#define NOTE_ID(map)                                                                                         \
    if (const int fd = map_fd(SIEVE_MAP_NAME(map)); fd >= 0) {                                               \
        SIEVE_ASSIGN(rare.map, map_id(fd));                                                                  \
    }
    SIEVE_RARE_MAPS(NOTE_ID)
#undef NOTE_ID
    SIEVE_ASSIGN(Instance instance, Instance::from_maps(duplicate(map_fd(SIEVE_MAP_CONTROL)),
                                                        duplicate(map_fd(SIEVE_MAP_NAME(sets))),
                                                        duplicate(map_fd(SIEVE_MAP_NAME(stats))), rare));
    return BpfObject(std::move(*loaded), options.point, std::move(instance));
}

Status BpfObject::wait_until_filled() {
    return filling_.valid() ? filling_.get() : Status();
}

Result<BpfObject> BpfObject::open_copy(bool frags) const {
    const LogCapture log;
    std::unique_ptr<Skeleton> copy = open_skeleton(HookPoint::xdp, frags);
    if (!copy) return load_refusal(errno, log);
    bpf_program__set_autoload(copy->program(SIEVE_PROGRAM), !frags);
#define SHARED_NAME(map) SIEVE_MAP_NAME(map),
    for (const char* name : {SIEVE_MAP_CONTROL, SIEVE_OPEN_MAPS(SHARED_NAME) SIEVE_RARE_MAPS(SHARED_NAME)})
        if (const int error = bpf_map__reuse_fd(copy->map(name), bpf_map__fd(skeleton_->map(name)));
            error != 0)
            return load_refusal(error, log);
#undef SHARED_NAME
    SIEVE_ASSIGN(Instance instance,
                 Instance::from_maps(duplicate(instance_.control_fd()), duplicate(instance_.sets_fd()),
                                     duplicate(instance_.stats_fd()), instance_.rare()));
    return BpfObject({std::move(copy), Filling()}, point_, std::move(instance));
}

int BpfObject::program_fd() const {
    return bpf_program__fd(skeleton_->program(program_name(point_)));
}

int BpfObject::frags_program_fd() const {
    const bpf_program* program = skeleton_->program(SIEVE_PROGRAM_FRAGS);
    const int fd = program == nullptr ? -1 : bpf_program__fd(program);
    return fd < 0 ? -1 : fd;
}

const volatile sieve_trace& BpfObject::trace() const {
    return skeleton_->trace();
}

bpf_object* BpfObject::object() const {
    return skeleton_->object();
}

} // namespace sieve::kernel
