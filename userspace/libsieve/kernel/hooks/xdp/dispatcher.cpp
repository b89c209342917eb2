// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <xdp/prog_dispatcher.h>

#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::kernel {

namespace {

constexpr std::array<std::string_view, 5> verdict_names{"aborted", "drop", "pass", "tx", "redirect"};

struct FreeBtf {
    void operator()(btf* types) const { btf__free(types); }
};
using Btf = std::unique_ptr<btf, FreeBtf>;

// The dispatcher's constants, which hold the rank of each program. Nothing if the dispatcher has none of a
// version that we know.
std::optional<xdp_dispatcher_config> read_config(const Program& dispatcher) {
    std::array<std::uint32_t, 8> ids{}; // a dispatcher has one map
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    info.nr_map_ids = ids.size();
    info.map_ids = reinterpret_cast<std::uintptr_t>(ids.data());
    if (bpf_obj_get_info_by_fd(dispatcher.fd.get(), &info, &length) != 0) return std::nullopt;
    for (std::size_t i = 0; i < std::min<std::size_t>(info.nr_map_ids, ids.size()); i++) {
        const UniqueFd map(bpf_map_get_fd_by_id(ids[i]));
        bpf_map_info map_info{};
        length = sizeof(map_info);
        if (!map || bpf_obj_get_info_by_fd(map.get(), &map_info, &length) != 0) continue;
        xdp_dispatcher_config config{};
        if (map_info.value_size != sizeof(config)) continue;
        const std::uint32_t zero = 0;
        if (bpf_map_lookup_elem(map.get(), &zero, &config) == 0 && config.magic == XDP_DISPATCHER_MAGIC &&
            config.dispatcher_version == XDP_DISPATCHER_VERSION)
            return config;
    }
    return std::nullopt;
}

// The dispatcher's types, including its functions prog0 to prog9.
Btf read_types(const Program& dispatcher) {
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    if (bpf_obj_get_info_by_fd(dispatcher.fd.get(), &info, &length) != 0 || info.btf_id == 0) return nullptr;
    return Btf(btf__load_from_kernel_by_id(info.btf_id));
}

// The position of the program that replaces this function of the dispatcher.
std::optional<std::size_t> position_of(const btf* types, std::uint32_t type_id) {
    const btf_type* type = types == nullptr ? nullptr : btf__type_by_id(types, type_id);
    const char* text = type == nullptr ? nullptr : btf__name_by_offset(types, type->name_off);
    const std::string_view name = text == nullptr ? "" : text;
    if (name == dispatcher_name) return 0; // libxdp replaces the whole dispatcher by a program that is alone
    constexpr std::string_view prefix = "prog";
    if (!name.starts_with(prefix)) return std::nullopt;
    std::size_t position = 0;
    const auto [end, error] =
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), position);
    if (error != std::errc() || end != name.data() + name.size() || position >= MAX_DISPATCHER_ACTIONS)
        return std::nullopt;
    return position;
}

} // namespace

// Each program replaces one function of the dispatcher, through a link.
Result<std::vector<DispatchedProgram>> dispatcher_members(const Program& dispatcher) {
    std::vector<DispatchedProgram> members;
    if (dispatcher.name != dispatcher_name) return members;
    const std::optional<xdp_dispatcher_config> config = read_config(dispatcher);
    const Btf types = read_types(dispatcher);
    std::vector<std::pair<std::size_t, DispatchedProgram>> found;
    for (std::uint32_t id = 0; bpf_link_get_next_id(id, &id) == 0;) {
        const UniqueFd link(bpf_link_get_fd_by_id(id));
        if (!link && (errno == ENOENT || errno == EAGAIN)) continue; // it has gone, or is being made
        if (!link) return refusal(fmt::format("opening BPF link {}", id), errno);
        bpf_link_info info{};
        __u32 length = sizeof(info);
        // Links of other types may have nothing to tell.
        if (bpf_obj_get_info_by_fd(link.get(), &info, &length) != 0) continue;
        if (info.type != BPF_LINK_TYPE_TRACING || info.tracing.target_obj_id != dispatcher.id) continue;
        SIEVE_ASSIGN(Program program, open_program(info.prog_id));
        const std::optional<std::size_t> position = position_of(types.get(), info.tracing.target_btf_id);
        DispatchedProgram member{.program = std::move(program), .rank = {}};
        if (config && position)
            member.rank = DispatcherRank{.priority = config->run_prios[*position],
                                         .chain = config->chain_call_actions[*position] &
                                                  ~(1U << XDP_DISPATCHER_RETVAL)};
        found.emplace_back(position.value_or(MAX_DISPATCHER_ACTIONS), std::move(member));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    members.reserve(found.size());
    for (auto& [position, member] : found) members.push_back(std::move(member));
    return members;
}

std::string pin_root() {
    const char* bpffs = std::getenv("LIBXDP_BPFFS");
    return fmt::format("{}/xdp", bpffs == nullptr ? "/sys/fs/bpf" : bpffs);
}

void unpin_dispatcher(std::uint32_t interface, std::uint32_t id) {
    std::error_code nothing_there;
    std::filesystem::remove_all(fmt::format("{}/dispatch-{}-{}", pin_root(), interface, id), nothing_there);
}

std::optional<std::uint32_t> parse_chain(std::string_view text) {
    if (text == "none") return 0;
    std::uint32_t chain = 0;
    while (true) {
        const std::size_t comma = text.find(',');
        const auto* name = std::find(verdict_names.begin(), verdict_names.end(), text.substr(0, comma));
        if (name == verdict_names.end()) return std::nullopt;
        chain |= 1U << (name - verdict_names.begin());
        if (comma == std::string_view::npos) return chain;
        text.remove_prefix(comma + 1);
    }
}

std::string chain_text(std::uint32_t chain) {
    std::string text;
    for (std::size_t i = 0; i < verdict_names.size(); i++)
        if ((chain >> i & 1) != 0) text += (text.empty() ? "" : ",") + std::string(verdict_names[i]);
    return text.empty() ? "none" : text;
}

} // namespace sieve::kernel
