// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/hit_marks.hpp"

#include <utility>
#include <vector>

#include "libsieve/control/access/open_table.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

namespace {

bool has_marks(const sieve_lookup& lookup) {
    const ExactKind* kind = kind_of(lookup).exact();
    return kind != nullptr && kind->has_marks(lookup);
}

struct Succession {
    OpenTable from;
    OpenTable to;

    void copy() const {
        static_cast<void>(from.for_each_entry(0, [this](const sieve_key& key, std::uint64_t, bool hit) {
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
        Result<OpenTable> from = open_table(kernel, set.name, before->map_id);
        Result<OpenTable> to = open_table(kernel, set.name, set.maps.filter_id);
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
