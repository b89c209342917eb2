// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/hit_marks.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

namespace {

bool has_marks(const sieve_lookup& lookup) {
    const ExactKind* kind = kind_of(lookup).exact();
    return kind != nullptr && kind->has_marks(lookup);
}

struct MarkedTable {
    std::unique_ptr<RunningFilter> filter; // owns what the table changes
    std::unique_ptr<ChangeableTable> table;

    static Result<MarkedTable> open(Kernel& kernel, std::uint32_t map_id) {
        MarkedTable open;
        SIEVE_ASSIGN(open.filter, kernel.open_filter(map_id));
        RunningFilter& filter = *open.filter;
        SIEVE_ASSIGN(
            open.table,
            kind_of(filter.lookup()).exact()->open_table(filter.lookup(), filter.file(), filter.lines()));
        if (open.table->unsettled()) SIEVE_TRY(open.table->settle([&] { return kernel.grace_period(); }));
        return open;
    }
};

struct Succession {
    MarkedTable from;
    MarkedTable to;

    void copy() const {
        const sieve_lookup& lookup = from.filter->lookup();
        static_cast<void>(kind_of(lookup).exact()->for_each_entry(
            lookup, from.filter->lines(), 0, [this](const sieve_key& key, std::uint64_t, bool hit) {
                if (hit) to.table->mark(key);
            }));
    }
};

std::vector<Succession> successions(Kernel& kernel, const kernel::Hook& hook,
                                    std::span<const ReadySet> fresh) {
    std::vector<Succession> all;
    for (const ReadySet& set : fresh) {
        if (!has_marks(set.image.lookup())) continue;
        const kernel::TableInForce now = kernel.read_table(hook);
        const kernel::SetInForce* before = now.find(set.name);
        if (before == nullptr) continue;
        const Result<kernel::FilterHeader> header = kernel.read_filter(before->map_id);
        if (!header || !has_marks(header->lookup) || header->lookup.fields != set.image.lookup().fields)
            continue;
        Result<MarkedTable> from = MarkedTable::open(kernel, before->map_id);
        Result<MarkedTable> to = MarkedTable::open(kernel, set.maps.filter_id);
        if (from && to) all.push_back({std::move(*from), std::move(*to)});
    }
    return all;
}

} // namespace

Status replace_keeping_hits(Kernel& kernel, const kernel::Hook& hook, std::span<const ReadySet> fresh,
                            const std::function<Status()>& replace) {
    const std::vector<Succession> all = successions(kernel, hook, fresh);
    for (const Succession& one : all) one.copy();
    const Status done = replace();
    if (all.empty() || (!done && done.error().kind != ErrorKind::unfinished)) return done;
    // A change on probation does not wait for the packets that still use the old filters.
    static_cast<void>(kernel.grace_period());
    for (const Succession& one : all) one.copy();
    return done;
}

} // namespace sieve::control
