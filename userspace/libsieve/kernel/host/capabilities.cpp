// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/capabilities.hpp"

#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/parallel/first_use.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

namespace {

constexpr const char* name = "sieve_probe";

// The smallest XDP program: return XDP_PASS.
constexpr std::array<bpf_insn, 2> pass_all = {
    bpf_insn{
        .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = XDP_PASS},
    bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};

UniqueFd load(bpf_prog_type type, bpf_prog_load_opts* options) {
    return UniqueFd(bpf_prog_load(type, name, "GPL", pass_all.data(), pass_all.size(), options));
}

// Loads BTF for the program's one function, `int sieve_probe(struct xdp_md *ctx)`. `function` becomes that
// function's type id.
UniqueFd load_types(std::uint32_t& function) {
    const std::unique_ptr<btf, decltype(&btf__free)> types(btf__new_empty(), &btf__free);
    if (!types) return UniqueFd();
    const int integer = btf__add_int(types.get(), "int", 4, BTF_INT_SIGNED);
    const int context = btf__add_struct(types.get(), "xdp_md", 4);
    btf__add_field(types.get(), "data", integer, 0, 0);
    const int pointer = btf__add_ptr(types.get(), context);
    const int prototype = btf__add_func_proto(types.get(), integer);
    btf__add_func_param(types.get(), "ctx", pointer);
    const int added = btf__add_func(types.get(), name, BTF_FUNC_GLOBAL, prototype);
    std::uint32_t size = 0;
    const void* raw = btf__raw_data(types.get(), &size);
    if (added < 0 || raw == nullptr) return UniqueFd();
    function = static_cast<std::uint32_t>(added);
    return UniqueFd(bpf_btf_load(raw, size, nullptr));
}

// Only a clear refusal counts. Any other failure here says nothing about whether libxdp would succeed.
bool may_replace_functions() {
    std::uint32_t function = 0;
    const UniqueFd types = load_types(function);
    if (!types) return true;
    const bpf_func_info info{.insn_off = 0, .type_id = function};
    LIBBPF_OPTS(bpf_prog_load_opts, options);
    options.prog_btf_fd = static_cast<std::uint32_t>(types.get());
    options.func_info = &info;
    options.func_info_cnt = 1;
    options.func_info_rec_size = sizeof(info);
    const UniqueFd target = load(BPF_PROG_TYPE_XDP, &options);
    if (!target) return true;
    options.attach_prog_fd = static_cast<std::uint32_t>(target.get());
    options.attach_btf_id = function;
    const UniqueFd extension = load(BPF_PROG_TYPE_EXT, &options);
    return extension || (errno != EPERM && errno != EACCES);
}

// Whether libxdp finds a bpffs for its state. We trust an environment that names another place.
bool has_bpffs() {
    if (std::getenv("LIBXDP_BPFFS") != nullptr || std::getenv("LIBXDP_BPFFS_AUTOMOUNT") != nullptr)
        return true;
    struct statfs info {};
    return ::statfs("/sys/fs/bpf", &info) == 0 && static_cast<unsigned long>(info.f_type) == BPF_FS_MAGIC;
}

} // namespace

Status may_load_programs() {
    const LogCapture log;
    if (!load(BPF_PROG_TYPE_XDP, nullptr)) return refusal("loading an XDP program", errno);
    return {};
}

bool may_use_dispatcher() {
    if (!has_bpffs()) return false;
    static std::atomic<const bool*> known = nullptr;
    return first_use(known, [] {
        const LogCapture log;
        return may_replace_functions();
    });
}

} // namespace sieve::kernel
