// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/set_count_bench.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "bpf/bench/bench_control.h"
#include "libsieve/bench/packet_bench.hpp"
#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A program with its table. The table keeps the maps.
struct Contender {
    SetCountRow row;
    kernel::Scratch scratch;
};

Result<Contender> contender(SetCountRow row, const kernel::WantedTable& table) {
    SIEVE_ASSIGN(kernel::Scratch scratch, kernel::Scratch::load(false));
    SIEVE_TRY(scratch.table().replace(table));
    return Contender{std::move(row), std::move(scratch)};
}

// The members, dealt out to so many sets.
std::vector<KeySet> dealt_keys(std::uint64_t keys, std::uint32_t sets) {
    const KeySet all = member_keys(keys);
    std::vector<KeySet> dealt;
    for (std::uint32_t set = 0; set < sets; set++) dealt.emplace_back(all.fields());
    for (std::size_t i = 0; i < all.size(); i++) dealt[i % sets].add(all.at(i));
    return dealt;
}

// The table of so many sets, each asked by itself; and, of more than one, the same with a joint filter.
Status add_contenders(std::vector<Contender>& contenders, std::uint32_t sets, bool exact,
                      const SetCountOptions& options, const Progress& progress) {
    const std::vector<KeySet> keys = dealt_keys(options.keys, sets);
    BuildOptions build;
    build.kind.kind = exact ? SIEVE_KIND_EXACT : SIEVE_KIND_XORSAT;
    if (!exact) build.bits_per_key = options.bits_per_key;
    kernel::WantedTable table{.default_action = SIEVE_ACTION_PASS, .sets = {}};
    std::vector<kernel::FilterMap> maps;
    SetCountRow alone{.sets = sets, .exact = exact, .times = {}};
    for (const KeySet& set : keys) {
        const auto begin = Clock::now();
        SIEVE_ASSIGN(const BuiltSet built, build_set(set, build, progress));
        alone.build += seconds_since(begin);
        alone.bytes += built.image.filter().size_bytes();
        alone.fpr += built.report.expected_fpr;
        SIEVE_ASSIGN(kernel::FilterMap map, kernel::FilterMap::create(built.image, "bench"));
        maps.push_back(std::move(map));
        table.sets.push_back({.name = fmt::format("set{}", table.sets.size()),
                              .action = SIEVE_ACTION_DROP,
                              .map_fd = maps.back().fd()});
    }
    SIEVE_ASSIGN(Contender first, contender(std::move(alone), table));
    contenders.push_back(std::move(first));
    if (sets < SIEVE_JOINT_LEAST_SETS) return {};

    std::vector<const KeySet*> members;
    for (const KeySet& set : keys) members.push_back(&set);
    const auto begin = Clock::now();
    JointOptions size{.fpr = {}, .bits_per_key = {}, .seed = {}, .exact = exact};
    if (!exact) size.bits_per_key = options.bits_per_key;
    SIEVE_ASSIGN(const JointFilter joint, JointFilter::build(members, size, progress));
    SetCountRow joined{.sets = sets, .joined = true, .exact = exact, .times = {}};
    joined.build = seconds_since(begin);
    joined.bytes = joint.lines().size_bytes();
    joined.fpr = sets * joint.expected_rate();
    SIEVE_ASSIGN(const kernel::FilterMap map, kernel::FilterMap::create(joint.lines(), "joint"));
    table.joint = kernel::WantedJoint{.map_fd = map.fd(), .sets = {}};
    for (const kernel::WantedSet& set : table.sets) table.joint->sets.push_back(set.name);
    SIEVE_ASSIGN(Contender second, contender(std::move(joined), table));
    contenders.push_back(std::move(second));
    return {};
}

} // namespace

Rounds SetCountTable::net(const SetCountRow& row, Traffic traffic) const {
    const auto at = static_cast<std::size_t>(traffic);
    return minus(row.times[at], rows.front().times[at]);
}

Rounds SetCountTable::to_one(const SetCountRow& row, Traffic traffic) const {
    const auto one = std::ranges::find_if(
        rows, [&](const SetCountRow& each) { return each.sets == 1 && each.exact == row.exact; });
    return one == rows.end() ? Rounds() : ratio(net(row, traffic), net(*one, traffic));
}

Result<SetCountTable> bench_set_counts(const SetCountOptions& options, const Progress& progress) {
    std::vector<Contender> contenders;
    SIEVE_ASSIGN(Contender none, contender({}, {.default_action = SIEVE_ACTION_PASS, .sets = {}}));
    contenders.push_back(std::move(none));
    for (const bool exact : {true, false})
        for (const std::uint32_t sets : options.sets)
            SIEVE_TRY(add_contenders(contenders, sets, exact, options, progress));
    SIEVE_ASSIGN(const BenchObject object, BenchObject::load(BenchSizes::without_peers(1, -1)));
    for (std::uint32_t round = 0; round < options.rounds; round++) {
        for (Contender& each : contenders)
            for (const Traffic traffic : {Traffic::non_members, Traffic::members, Traffic::half}) {
                object.draw(traffic, options.keys);
                SIEVE_ASSIGN(
                    const double nanoseconds,
                    time_ipv4_packets(object, each.scratch.object().program_fd(), options.milliseconds));
                each.row.times[static_cast<std::size_t>(traffic)].push_back(nanoseconds);
            }
        progress("packets", (round + 1.0) / options.rounds);
    }
    SetCountTable table{.keys = options.keys, .bits_per_key = options.bits_per_key, .rows = {}};
    for (Contender& each : contenders) table.rows.push_back(std::move(each.row));
    return table;
}

} // namespace sieve::bench
