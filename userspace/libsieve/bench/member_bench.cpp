// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/member_bench.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <bpf/libbpf.h>
#include <sieve/policy.h>

#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

Result<MemberRow> ask_kind(const FilterKind& kind, const BenchObject& object, const MemberOptions& options,
                           const Progress& progress) {
    const KindFacts& facts = kind.facts();
    BuildOptions build;
    build.kind.kind = facts.number;
    build.kind.effort = Effort::fast; // members do not depend on rebalancing
    if (kind.exact() == nullptr)
        build.bits_per_key = std::max(options.bits_per_key, facts.least_bits_per_key);
    SIEVE_ASSIGN(const BuiltSet built, build_set(member_keys(options.keys), build, progress));
    SIEVE_ASSIGN(const kernel::FilterMap map, kernel::FilterMap::create(built.image, "bench"));
    constexpr std::uint32_t index = 0;
    SIEVE_TRY(object.put_filter(index, map.fd()));
    bench_control& control = object.control();
    control.index = index;
    control.apart = 0;
    object.draw(Traffic::members, options.keys);
    control.found = 0;
    MemberRow row;
    row.kind = facts.name;
    const auto start = std::chrono::steady_clock::now();
    while (row.asked < options.lookups) {
        constexpr std::uint64_t most_runs = 4096; // in one call, so that the progress is seen
        const std::uint64_t runs =
            std::min(most_runs, (options.lookups - row.asked + control.lookups - 1) / control.lookups);
        const std::array<std::uint8_t, 64> frame{};
        SIEVE_TRY(run_program(bpf_program__fd(object.skeleton().progs.bench_filter), frame,
                              static_cast<std::uint32_t>(runs)));
        row.asked += runs * control.lookups;
        progress(facts.name, static_cast<double>(row.asked) / static_cast<double>(options.lookups));
    }
    row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    row.missed = row.asked - control.found;
    return row;
}

} // namespace

Result<MemberTable> bench_members(const MemberOptions& options, const Progress& progress) {
    SIEVE_ASSIGN(const BenchObject object, BenchObject::load(BenchSizes::without_peers(1, -1)));
    MemberTable table{.keys = options.keys, .rows = {}};
    for (const FilterKind* kind : filter_kinds()) {
        SIEVE_ASSIGN(MemberRow row, ask_kind(*kind, object, options, progress));
        table.rows.push_back(std::move(row));
    }
    return table;
}

} // namespace sieve::bench
