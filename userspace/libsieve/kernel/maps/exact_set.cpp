// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/exact_set.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include <bpf/bpf.h>
#include <fmt/core.h>

#include "libsieve/filters/build_records.hpp"
#include "libsieve/kernel/host/grace_period.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/instance.hpp"

namespace sieve::kernel {

namespace {

struct ExactHandle {
    UniqueFd fd;
    std::uint32_t lines = 0;
};

Result<ExactHandle> open_lines(std::uint32_t map_id) {
    SIEVE_ASSIGN(UniqueFd fd, open_map(map_id));
    bpf_map_info info{};
    __u32 length = sizeof(info);
    if (const int error = bpf_obj_get_info_by_fd(fd.get(), &info, &length); error != 0)
        return refusal(fmt::format("asking for the size of BPF map {}", map_id), error);
    if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(sieve_line))
        return kernel_refused(fmt::format("BPF map {} is in the table of sets but holds no keys", map_id));
    return ExactHandle{.fd = std::move(fd), .lines = info.max_entries};
}

KeyNote note_of(bool marked) {
    return {.state = marked ? std::uint32_t{SIEVE_EXACT_UNSURE} : std::uint32_t{SIEVE_EXACT_IN}};
}

} // namespace

Result<ExactSet> ExactSet::create(const Image& image, std::span<const sieve_key> keys,
                                  const std::string& name, std::uint64_t room) {
    const sieve_lookup& lookup = image.lookup();
    SIEVE_ASSIGN(
        const HugeArray<sieve_line> lines,
        build_records(keys, {.fields = lookup.fields, .prefixes = lookup.probes != 0, .room = room}));
    SIEVE_ASSIGN(FilterMap map, FilterMap::create(std::span(lines.data(), lines.size()), name));
    return ExactSet(std::move(map), lines.size() * sizeof(sieve_line));
}

Result<std::uint64_t> read_exact_bytes(std::uint32_t map_id) {
    SIEVE_ASSIGN(const ExactHandle map, open_lines(map_id));
    return std::uint64_t{map.lines} * sizeof(sieve_line);
}

Result<MappedExactSet> MappedExactSet::open(std::uint32_t map_id) {
    SIEVE_ASSIGN(const ExactHandle map, open_lines(map_id));
    void* pages = ::mmap(nullptr, std::size_t{map.lines} * sizeof(sieve_line), PROT_READ | PROT_WRITE,
                         MAP_SHARED, map.fd.get(), 0);
    if (pages == MAP_FAILED)
        return refusal(fmt::format("mapping BPF map {}", map_id), errno,
                       "an exact set's map is made with BPF_F_MMAPABLE and not frozen");
    MappedExactSet set(static_cast<sieve_line*>(pages), map.lines);
    if (const std::string fault = Records::fault({set.lines_, set.count_}); !fault.empty())
        return kernel_refused(
            fmt::format("BPF map {} is in the table of sets but holds no keys: {}", map_id, fault));
    return set;
}

MappedExactSet::MappedExactSet(MappedExactSet&& other) noexcept
    : lines_(std::exchange(other.lines_, nullptr)), count_(other.count_) {}

MappedExactSet& MappedExactSet::operator=(MappedExactSet&& other) noexcept {
    std::swap(lines_, other.lines_);
    std::swap(count_, other.count_);
    return *this;
}

MappedExactSet::~MappedExactSet() {
    if (lines_ != nullptr) ::munmap(lines_, count_ * sizeof(sieve_line));
}

std::optional<KeyNote> MappedExactSet::find(const sieve_key& key) const {
    const std::optional<std::uint32_t> place = records().find(key);
    if (!place) return std::nullopt;
    return note_of(records().is_marked(*place));
}

Result<bool> MappedExactSet::put(const sieve_key& key, const KeyNote& note) {
    Records records = this->records();
    if (records.header().tagged == 0)
        return kernel_refused("the exact set in force was made to stay as it is");
    if (!records.fits(key))
        return kernel_refused("the exact set in force holds keys of other fields than this one");
    const bool marked = note.state == SIEVE_EXACT_UNSURE;
    if (const std::optional<std::uint32_t> place = records.find(key)) {
        records.mark(*place, marked);
        return true;
    }
    Records::Added added = records.add(key, marked);
    if (added == Records::Added::must_wait) {
        SIEVE_TRY(grace_period());
        records.use_left();
        added = records.add(key, marked);
    }
    return added == Records::Added::done;
}

Status MappedExactSet::erase(const sieve_key& key) {
    Records records = this->records();
    if (records.header().tagged == 0)
        return kernel_refused("the exact set in force was made to stay as it is");
    if (const std::optional<std::uint32_t> place = records.find(key)) records.remove(*place);
    return {};
}

std::vector<NotedKey> MappedExactSet::all() const {
    const Records records = this->records();
    std::vector<NotedKey> all;
    for (std::uint32_t place = 0; place < records.places(); place++)
        if (records.is_used(place)) all.push_back({records.key(place), note_of(records.is_marked(place))});
    return all;
}

} // namespace sieve::kernel
