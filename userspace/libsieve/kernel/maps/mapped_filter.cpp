// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/mapped_filter.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/filter_header.hpp"

namespace sieve::kernel {

Result<MappedFilter> MappedFilter::map(std::uint32_t map_id) {
    SIEVE_ASSIGN(const FilterHandle handle, open_live_filter(map_id));
    void* pages = ::mmap(nullptr, std::size_t{handle.lines} * sizeof(sieve_line), PROT_READ | PROT_WRITE,
                         MAP_SHARED, handle.fd.get(), 0);
    if (pages == MAP_FAILED)
        return refusal(fmt::format("mapping BPF map {}", map_id), errno,
                       "a filter's map is made with BPF_F_MMAPABLE and not frozen");
    return MappedFilter(static_cast<sieve_line*>(pages), handle.lines);
}

bool MappedFilter::has_lines() {
    const std::uint64_t behind = std::uint64_t{file().witnesses} + file().exceptions;
    return kind_of(lookup()).lines(lookup()) + behind <= count_ - SIEVE_FIRST_LINE;
}

Result<MappedFilter> MappedFilter::open(std::uint32_t map_id) {
    SIEVE_ASSIGN(MappedFilter filter, map(map_id));
    const sieve_lookup& lookup = filter.lookup();
    if (lookup.magic != SIEVE_MAGIC || !geometry_fault(lookup).empty() || !filter.has_lines())
        return kernel_refused(fmt::format("BPF map {} is in the table of sets but is no filter", map_id));
    return filter;
}

Result<MappedFilter> MappedFilter::open_joint(std::uint32_t map_id) {
    SIEVE_ASSIGN(MappedFilter filter, map(map_id));
    if (!joint_fault(filter.lookup()).empty() || !filter.has_lines())
        return kernel_refused(
            fmt::format("BPF map {} is the table's joint filter but has no such header", map_id));
    return filter;
}

MappedFilter::MappedFilter(MappedFilter&& other) noexcept
    : lines_(std::exchange(other.lines_, nullptr)), count_(other.count_) {}

MappedFilter& MappedFilter::operator=(MappedFilter&& other) noexcept {
    std::swap(lines_, other.lines_);
    std::swap(count_, other.count_);
    return *this;
}

MappedFilter::~MappedFilter() {
    if (lines_ != nullptr) ::munmap(lines_, count_ * sizeof(sieve_line));
}

const sieve_lookup& MappedFilter::lookup() const {
    return *reinterpret_cast<const sieve_lookup*>(lines_);
}

const sieve_probes& MappedFilter::probes() const {
    return *reinterpret_cast<const sieve_probes*>(lines_ + SIEVE_PROBES_LINE);
}

sieve_file& MappedFilter::file() {
    return *reinterpret_cast<sieve_file*>(lines_ + SIEVE_FILE_LINE);
}

std::span<sieve_line> MappedFilter::filter() {
    return {lines_ + SIEVE_FIRST_LINE, kind_of(lookup()).lines(lookup())};
}

std::span<const sieve_witness> MappedFilter::witnesses() {
    const std::span<sieve_line> own = filter();
    return {reinterpret_cast<const sieve_witness*>(own.data() + own.size()), file().witnesses};
}

std::span<const sieve_exception> MappedFilter::exceptions() {
    const std::span<const sieve_witness> before = witnesses();
    return {reinterpret_cast<const sieve_exception*>(before.data() + before.size()), file().exceptions};
}

} // namespace sieve::kernel
