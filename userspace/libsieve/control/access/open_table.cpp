// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/access/open_table.hpp"

#include <utility>

#include <fmt/core.h>

#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

namespace {

tl::unexpected<Error> not_intact(const std::string& name, const Error& fault) {
    return kernel_refused(
        fmt::format("the table of set {} is damaged ({}); swap in a new one", name, fault.message));
}

} // namespace

bool lists_and_changes(const sieve_lookup& lookup) {
    const FilterKind& kind = kind_of(lookup);
    return kind.exact() != nullptr && kind.facts().changes_live;
}

Result<KeySet> OpenTable::list() const {
    return kind_of(filter->lookup()).exact()->list(filter->lookup(), filter->lines());
}

Status OpenTable::for_each_entry(std::uint64_t now, const VisitEntry& visit) const {
    return kind_of(filter->lookup()).exact()->for_each_entry(filter->lookup(), filter->lines(), now, visit);
}

bool OpenTable::has_ends() const {
    return kind_of(filter->lookup()).exact()->has_ends(filter->lookup(), filter->lines());
}

Result<OpenTable> open_table(Filters& kernel, const std::string& name, std::uint32_t map_id) {
    OpenTable open;
    SIEVE_ASSIGN(open.filter, kernel.open_filter(map_id));
    RunningFilter& filter = *open.filter;
    auto table = kind_of(filter.lookup()).exact()->open_table(filter.lookup(), filter.file(), filter.lines());
    if (!table) return not_intact(name, table.error());
    open.table = std::move(*table);
    if (!open.table->unsettled()) return open;
    const Status settled = open.table->settle([&] { return kernel.grace_period(); });
    if (!settled && settled.error().kind == ErrorKind::bad_input) return not_intact(name, settled.error());
    SIEVE_TRY(settled);
    return open;
}

} // namespace sieve::control
