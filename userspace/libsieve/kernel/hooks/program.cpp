// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/program.hpp"

#include <cerrno>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel {

Result<Program> open_program(std::uint32_t id) {
    Program program{.id = id, .name = {}, .fd = UniqueFd(bpf_prog_get_fd_by_id(id))};
    if (!program.fd) return refusal(fmt::format("opening BPF program {}", id), errno);
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(program.fd.get(), &info, &length); error != 0)
        return refusal(fmt::format("asking for the name of BPF program {}", id), error);
    program.name = info.name;
    return program;
}

Result<bool> has_program(std::uint32_t id) {
    const UniqueFd program(bpf_prog_get_fd_by_id(id));
    if (program) return true;
    if (errno == ENOENT) return false;
    return refusal(fmt::format("opening BPF program {}", id), errno);
}

Result<std::uint32_t> program_id(int fd) {
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd, &info, &length); error != 0)
        return refusal("asking for a BPF program's id", error);
    return info.id;
}

} // namespace sieve::kernel
