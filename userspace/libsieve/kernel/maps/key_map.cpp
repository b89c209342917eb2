// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/key_map.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include <sieve/inserted.h>

#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/maps/instance.hpp"

namespace sieve::kernel {

namespace {

// The number of keys that one system call takes from the kernel.
constexpr std::uint32_t batch_keys = std::uint32_t{1} << 14;

KeyNote note_of(const sieve_inserted& value) {
    return {.end = value.end, .state = value.state};
}

sieve_inserted value_of(const KeyNote& note) {
    return {.end = note.end, .state = note.state, .reserved = 0};
}

Result<bool> put_in(int fd, const sieve_key& key, const KeyNote& note) {
    const sieve_inserted value = value_of(note);
    if (bpf_map_update_elem(fd, &key, &value, BPF_ANY) == 0) return true;
    if (errno == E2BIG) return false;
    return refusal("adding a key to a BPF hash map", errno);
}

} // namespace

Result<KeyMap> KeyMap::open(std::uint32_t map_id) {
    SIEVE_ASSIGN(UniqueFd fd, open_map(map_id));
    bpf_map_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd.get(), &info, &length); error != 0)
        return refusal(fmt::format("asking for the shape of BPF map {}", map_id), error);
    if (info.type != BPF_MAP_TYPE_HASH || info.key_size != sizeof(sieve_key) ||
        info.value_size != sizeof(sieve_inserted))
        return kernel_refused(fmt::format("BPF map {} is in the table of sets but holds no keys", map_id));
    return KeyMap(std::move(fd), info.max_entries);
}

Result<std::optional<KeyNote>> KeyMap::find(const sieve_key& key) const {
    sieve_inserted value{};
    if (bpf_map_lookup_elem(fd_.get(), &key, &value) == 0) return note_of(value);
    if (errno == ENOENT) return std::nullopt;
    return refusal("looking a key up in a BPF hash map", errno);
}

Result<bool> KeyMap::put(const sieve_key& key, const KeyNote& note) const {
    return put_in(fd_.get(), key, note);
}

Status KeyMap::erase(const sieve_key& key) const {
    if (bpf_map_delete_elem(fd_.get(), &key) != 0 && errno != ENOENT)
        return refusal("deleting a key from a BPF hash map", errno);
    return {};
}

Result<std::vector<NotedKey>> KeyMap::all() const {
    std::vector<NotedKey> all;
    // A batch has room for the fullest bucket of the kernel's table.
    std::uint32_t room = std::min(batch_keys, std::max<std::uint32_t>(most_, 64));
    std::vector<sieve_key> keys(room);
    std::vector<sieve_inserted> values(room);
    LIBBPF_OPTS(bpf_map_batch_opts, options);
    std::uint32_t from = 0, next = 0;
    for (bool first = true;; first = false) {
        std::uint32_t count = room;
        const int error = bpf_map_lookup_batch(fd_.get(), first ? nullptr : &from, &next, keys.data(),
                                               values.data(), &count, &options);
        const int why = error == 0 ? 0 : errno;
        if (why == ENOSPC) {
            room *= 2;
            keys.resize(room);
            values.resize(room);
            continue; // the kernel has not moved on: `from` is where it was
        }
        if (why != 0 && why != ENOENT) return refusal("reading a BPF hash map of keys", why);
        for (std::uint32_t i = 0; i < count; i++) all.push_back({keys[i], note_of(values[i])});
        if (why == ENOENT) return all;
        from = next;
    }
}

Result<UniqueFd> create_inserted_map(const std::string& name, std::uint32_t most,
                                     std::span<const NotedKey> keys) {
    const std::string what = fmt::format("a BPF hash map for {} keys inserted into set {}", most, name);
    LIBBPF_OPTS(bpf_map_create_opts, options);
    options.map_flags = BPF_F_NO_PREALLOC;
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_HASH, map_name(name).c_str(), sizeof(sieve_key),
                               sizeof(sieve_inserted), most, &options));
    if (!fd) return refusal(what, errno);
    for (const NotedKey& one : keys) {
        SIEVE_ASSIGN(const bool room, put_in(fd.get(), one.key, one.note));
        if (!room) return refusal(what, E2BIG);
    }
    return fd;
}

} // namespace sieve::kernel
