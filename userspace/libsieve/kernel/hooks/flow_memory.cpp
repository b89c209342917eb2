// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/flow_memory.hpp"

#include <netinet/in.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <vector>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <sieve/ports.h>

#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/hooks/noting.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/map_indices.hpp"
#include "libsieve/util/random/secret.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::kernel {

namespace {

constexpr std::uint64_t entries_of_flow = 3;
constexpr char memory_name[] = "sieve_flow_mem";

constexpr std::uint64_t page_entries = std::uint64_t{SIEVE_FLOW_PAGE_LINES} * SIEVE_FLOW_ENTRIES;

// Without the head's.
std::uint64_t pages_for(std::uint64_t max_flows) {
    return (max_flows * entries_of_flow + page_entries - 1) / page_entries;
}

std::size_t bytes_for(std::uint64_t pages) {
    return (pages + 1) * sizeof(sieve_flow_page);
}

// Programs write the entries at the same time.
std::atomic_ref<__u64> shared(__u64& entry) {
    static_assert(std::atomic_ref<__u64>::is_always_lock_free);
    return std::atomic_ref<__u64>(entry);
}

std::uint64_t units(std::chrono::seconds time) {
    return (static_cast<std::uint64_t>(time.count()) * 1'000'000'000U >> SIEVE_FLOW_CLOCK_SHIFT) + 1;
}

std::uint64_t now() {
    return program_now() >> SIEVE_FLOW_CLOCK_SHIFT;
}

// How long a flow of the protocol lives after the host's last packet.
std::uint64_t limit_of(const sieve_key& key, FlowAge age) {
    const bool established = age == FlowAge::established;
    switch (key.word[4] & SIEVE_PROTO_MASK) {
    case SIEVE_PORTED_TCP:
        if (age == FlowAge::closing) return SIEVE_FLOW_TCP_CLOSING;
        return established ? SIEVE_FLOW_TCP_ESTABLISHED : SIEVE_FLOW_TCP_NEW;
    case SIEVE_PORTED_UDP:
        return established ? SIEVE_FLOW_UDP_STREAM : SIEVE_FLOW_UDP_NEW;
    case IPPROTO_ICMP:
    case IPPROTO_ICMPV6:
        return SIEVE_FLOW_ECHO;
    default:
        return SIEVE_FLOW_OTHER;
    }
}

std::uint64_t state_of(const sieve_key& key, FlowAge age) {
    if (age == FlowAge::established) return SIEVE_FLOW_ESTABLISHED;
    const bool tcp = (key.word[4] & SIEVE_PROTO_MASK) == SIEVE_PORTED_TCP;
    return tcp && age == FlowAge::closing ? SIEVE_FLOW_CLOSING : 0;
}

// The keys that stand for a flow in the memory: its own, unless the protocol has no ports or several
// addresses at each end, and that of its pair of addresses.
std::vector<sieve_key> keys_of(const sieve_key& key) {
    const auto proto = static_cast<__u8>(key.word[4] & SIEVE_PROTO_MASK);
    sieve_key pair = key;
    pair.word[4] = sieve_flow_pair_word(proto);
    const bool own = proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6 ||
                     (sieve_has_ports(proto) != 0 && proto != SIEVE_PORTED_SCTP);
    return own ? std::vector{key, pair} : std::vector{pair};
}

} // namespace

std::uint64_t flow_memory_bytes(std::uint64_t max_flows) {
    return bytes_for(pages_for(max_flows));
}

void FlowMemory::Unmap::operator()(void* pages) const {
    ::munmap(pages, bytes);
}

Result<FlowMemory> FlowMemory::map(UniqueFd fd) {
    bpf_map_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd.get(), &info, &length); error != 0)
        return refusal("asking for the flow memory's properties", error);
    if (std::string_view(info.name) != memory_name)
        return kernel_refused(
            fmt::format("BPF map {} ({}) is where a flow memory belongs, and is none", info.id, info.name));
    const auto other = [&](const char* found) {
        return failure(ErrorKind::other_version,
                       fmt::format("BPF map {} is no flow memory of this version: {}", info.id, found));
    };
    if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(sieve_flow_page) ||
        info.max_entries < 2 || (info.map_flags & BPF_F_MMAPABLE) == 0)
        return other("it has another shape");
    const std::size_t bytes = bytes_for(info.max_entries - 1);
    void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (pages == MAP_FAILED) return refusal("mapping the flow memory", errno);
    FlowMemory memory(std::move(fd), info.id, Pages(pages, Unmap{bytes}));
    // create() writes the head of a new one.
    const sieve_flow_head& head = memory.head();
    if (head.magic != 0 && (head.magic != SIEVE_FLOW_MAGIC || head.where.pages != info.max_entries - 1))
        return other("its head says so");
    return memory;
}

Result<FlowMemory> FlowMemory::create(std::uint64_t max_flows) {
    if (max_flows < least_flows || max_flows > most_flows)
        return invalid_request(
            fmt::format("a flow memory for {} flows: expected {} to {}", max_flows, least_flows, most_flows));
    const auto pages = static_cast<std::uint32_t>(pages_for(max_flows));
    LIBBPF_OPTS(bpf_map_create_opts, options);
    options.map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP;
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_ARRAY, memory_name, sizeof(std::uint32_t),
                               sizeof(sieve_flow_page), pages + 1, &options));
    if (!fd)
        return refusal(fmt::format("a BPF map of {} KiB for {} flows", bytes_for(pages) >> 10, max_flows),
                       errno);
    SIEVE_ASSIGN(FlowMemory memory, map(std::move(fd)));
    sieve_flow_head& head = memory.head();
    std::array<std::uint64_t, SIEVE_HASH_KEY_WORDS> secret{};
    SIEVE_TRY(draw_secret(std::nullopt, secret));
    std::copy(secret.begin(), secret.end(), head.where.hash_key);
    head.where.pages = pages;
    head.max_flows = static_cast<std::uint32_t>(max_flows);
    head.magic = SIEVE_FLOW_MAGIC;
    return memory;
}

Result<FlowMemory> FlowMemory::open(std::uint32_t map_id) {
    SIEVE_ASSIGN(UniqueFd fd, open_map(map_id));
    SIEVE_ASSIGN(FlowMemory memory, map(std::move(fd)));
    if (memory.head().magic != SIEVE_FLOW_MAGIC)
        return failure(ErrorKind::other_version, fmt::format("BPF map {} is no flow memory", map_id));
    return memory;
}

Result<std::optional<FlowMemory>> FlowMemory::of_instance(const Instance& instance) {
    const std::uint32_t id = instance.control().flows_id;
    if (id == 0) return std::nullopt;
    return open(id);
}

Result<std::optional<FlowMemory>> FlowMemory::in_force() {
    for (const Noting& noting : all_notings())
        if (noting.memory_id != 0) return open(noting.memory_id);
    for (const Interface& interface : all_interfaces())
        for (const HookPoint point : all_hook_points) {
            const auto hook = read_hook(interface, point);
            if (!hook || !hook->instance) continue;
            auto memory = of_instance(*hook->instance);
            if (!memory || *memory) return memory;
        }
    return std::nullopt;
}

sieve_flow_head& FlowMemory::head() const {
    return *static_cast<sieve_flow_head*>(pages_.get());
}

std::array<sieve_flow_line*, SIEVE_FLOW_LINES> FlowMemory::lines_at(const sieve_flow_place& place) const {
    sieve_flow_line* const lines = static_cast<sieve_flow_page*>(pages_.get())[place.page].line;
    return {lines + place.line[0], lines + place.line[1]};
}

std::span<__u64> FlowMemory::entries() const {
    return {static_cast<sieve_flow_page*>(pages_.get())[1].line[0].entry, where().pages * page_entries};
}

Status FlowMemory::put_into(const Instance& instance) const {
    if (instance.rare().flows == 0) return kernel_refused("the program has no map for a flow memory");
    SIEVE_ASSIGN(const UniqueFd outer, open_map(instance.rare().flows));
    const std::uint32_t zero = 0;
    const int inner = fd();
    // A packet between the two steps finds nothing.
    volatile sieve_flow_where& copy = instance.control().flows;
    for (std::size_t i = 0; i < SIEVE_HASH_KEY_WORDS; i++) copy.hash_key[i] = where().hash_key[i];
    copy.pages = where().pages;
    if (const int error = bpf_map_update_elem(outer.get(), &zero, &inner, BPF_ANY); error != 0)
        return refusal("giving the flow memory to the program", error);
    instance.control().flows_id = id_;
    return {};
}

Status FlowMemory::take_out_of(const Instance& instance) {
    if (instance.control().flows_id == 0) return {};
    SIEVE_ASSIGN(const UniqueFd outer, open_map(instance.rare().flows));
    SIEVE_TRY(clear_map(outer.get(), 0));
    instance.control().flows_id = 0;
    return {};
}

// As sieve_flow_note() in bpf/note.h does it.
bool FlowMemory::note(const sieve_key& key, FlowAge age) const {
    const std::uint64_t limit = limit_of(key, age);
    const std::uint64_t state = state_of(key, age);
    const std::uint64_t time = now();
    bool noted = true;
    for (const sieve_key& each : keys_of(key)) {
        const sieve_flow_place place = sieve_flow_locate(&where(), &each);
        const auto line = lines_at(place);
        const std::uint64_t wanted = sieve_flow_entry(place.tag, state, time, limit);
        bool done = false;
        while (!done) {
            __u64* found = nullptr;
            for (sieve_flow_line* const one : line)
                for (__u64& entry : one->entry)
                    if (found == nullptr && sieve_flow_is(shared(entry).load(), place.tag) != 0)
                        found = &entry;
            __u64 present = 0;
            if (found != nullptr) {
                present = shared(*found).load();
                if (sieve_flow_is(present, place.tag) == 0) continue; // a program has just given it away
                if (sieve_flow_left(present, time) >= limit) break;
            } else {
                std::uint64_t victim = sieve_flow_victim(line[0], time, 0);
                const std::uint64_t other = sieve_flow_victim(line[1], time, SIEVE_FLOW_ENTRIES);
                if (other >> 4U < victim >> 4U) victim = other;
                if (victim >> 4U > SIEVE_FLOW_NOT_FREE + limit - (age == FlowAge::established ? 1 : 0)) {
                    noted = false;
                    break;
                }
                found = &line[(victim & SIEVE_FLOW_ENTRIES) != 0 ? 1 : 0]->entry[victim % SIEVE_FLOW_ENTRIES];
                present = shared(*found).load();
                // A program may have taken the place since it was chosen.
                const std::uint64_t left =
                    victim >> 4U > SIEVE_FLOW_NOT_FREE ? (victim >> 4U) - SIEVE_FLOW_NOT_FREE : 0;
                if (sieve_flow_left(present, time) > left) continue;
            }
            done = shared(*found).compare_exchange_strong(present, wanted);
        }
    }
    return noted;
}

bool FlowMemory::holds(const sieve_key& key) const {
    const sieve_key asked = keys_of(key).front();
    const sieve_flow_place place = sieve_flow_locate(&where(), &asked);
    for (sieve_flow_line* const line : lines_at(place))
        for (__u64& entry : line->entry)
            if (const __u64 present = shared(entry).load(); sieve_flow_is(present, place.tag) != 0)
                return sieve_flow_left(present, now()) != 0;
    return false;
}

void FlowMemory::learn_for(std::chrono::seconds time) const {
    const std::uint64_t until = time.count() > 0 ? now() + units(time) : 0;
    std::atomic_ref<__u32>(head().learn_until).store(static_cast<__u32>(until));
}

FlowMemoryFacts FlowMemory::facts() const {
    FlowMemoryFacts facts;
    facts.max_flows = max_flows();
    facts.bytes = bytes_for(where().pages);
    facts.entries = entries().size();
    const std::uint64_t time = now();
    for (__u64& entry : entries()) {
        const __u64 present = shared(entry).load(std::memory_order_relaxed);
        if (sieve_flow_left(present, time) == 0) continue;
        facts.used++;
        if ((present & SIEVE_FLOW_ESTABLISHED) != 0) facts.established++;
    }
    const std::uint64_t until = std::atomic_ref<__u32>(head().learn_until).load();
    if (until > time)
        facts.learning = std::chrono::seconds(((until - time) << SIEVE_FLOW_CLOCK_SHIFT) / 1'000'000'000U);
    return facts;
}

void FlowMemory::sweep() const {
    const std::uint64_t time = now();
    for (__u64& entry : entries()) {
        __u64 present = shared(entry).load(std::memory_order_relaxed);
        if (present != 0 && sieve_flow_left(present, time) == 0)
            shared(entry).compare_exchange_strong(present, 0);
    }
}

std::chrono::nanoseconds FlowMemory::age(std::chrono::seconds time) const {
    const std::uint64_t by = std::chrono::nanoseconds(time).count() >> SIEVE_FLOW_CLOCK_SHIFT;
    for (__u64& entry : entries()) {
        __u64 present = shared(entry).load();
        while (present != 0) {
            const __u64 older = (present & ~SIEVE_FLOW_TIME_MASK) | ((present - by) & SIEVE_FLOW_TIME_MASK);
            if (shared(entry).compare_exchange_strong(present, older)) break;
        }
    }
    const std::uint64_t until = std::atomic_ref<__u32>(head().learn_until).load();
    std::atomic_ref<__u32>(head().learn_until).store(static_cast<__u32>(until > by ? until - by : 0));
    return std::chrono::nanoseconds(by << SIEVE_FLOW_CLOCK_SHIFT);
}

} // namespace sieve::kernel
