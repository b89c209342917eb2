// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/prefix_bench.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <sieve/policy.h>

#include "libsieve/bench/setup/frames.hpp"
#include "libsieve/bench/setup/list_files.hpp"
#include "libsieve/bench/setup/peers.hpp"
#include "libsieve/bench/setup/routing_table.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/prefixes/address_set.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/util/text/number.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

constexpr std::uint64_t questions_each = 1U << 18; // members, and as many non-members

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<std::vector<AddressRange>> read_workload(const std::string& workload) {
    struct Table {
        const char* name;
        std::vector<AddressRange> (*make)(std::uint64_t);
    };
    for (const auto& [name, make] :
         {Table{"table:", routing_table_ipv4}, Table{"table6:", routing_table_ipv6}}) {
        if (!workload.starts_with(name)) continue;
        const std::optional<std::uint64_t> count = parse_whole(workload.substr(std::strlen(name)));
        if (!count || *count < 100 || *count > 10'000'000)
            return invalid_request(fmt::format(
                "{}: expected a number of prefixes from 100 to 1e7, such as {}1e5", workload, name));
        return make(*count);
    }
    SIEVE_ASSIGN(Feed feed, read_feed({workload}, SIEVE_FIELD_SRC, {.ranges = true}));
    for (std::size_t i = 0; i < feed.keys.size(); i++) {
        const sieve_key key = feed.keys.at(i);
        const uint128 address = address_number(key.word[0], key.word[1]);
        feed.ranges.push_back({address, address});
    }
    return std::move(feed.ranges);
}

class Bench {
  public:
    Bench(const PrefixOptions& options, const Progress& progress) : options_(options), progress_(progress) {}

    Result<PrefixTable> run() {
        SIEVE_ASSIGN(ranges_, read_workload(options_.workload));
        members_ = address_set_of(ranges_);
        if (members_.ranges() == 0) return bad_input(options_.workload + ": no prefixes");
        if (!members_.members[0].empty() && !members_.members[1].empty())
            return bad_input(options_.workload + ": IPv4 and IPv6 together, expected one of them");
        ipv4_ = members_.members[SIEVE_FAMILY_V6].empty();
        table_.workload = options_.workload;
        table_.prefixes = ranges_.size();
        table_.ranges = members_.ranges();
        for (const FilterKind* kind : filter_kinds())
            SIEVE_TRY(
                build(fmt::format("{}{}", kind->facts().name, kind->exact() == nullptr ? ", prefix set" : ""),
                      {.kind = kind->facts().number}));
        SIEVE_TRY(load());
        SIEVE_TRY(measure());
        SIEVE_TRY(check());
        return std::move(table_);
    }

  private:
    // A contestant's program. `row` is null for the base.
    struct Runner {
        int program;
        std::uint32_t index; // of a filter: its map index
        std::uint32_t repeat = 1;
        std::array<std::uint64_t, 2> asked{}, found{};
    };

    Status build(const std::string& name, const KindOptions& kind) {
        BuildOptions build;
        build.kind = kind;
        // Rebalancing would take minutes for large lists, and the cost of a lookup does not depend on it.
        if (kind_of(kind.kind).facts().rebalances_slowly) build.kind.effort = Effort::fast;
        build.label = "benchmark";
        auto start = std::chrono::steady_clock::now();
        Result<BuiltSet> built = build_set(KeySet(SIEVE_FIELD_SRC), ranges_, build, progress_);
        if (!built) {
            table_.skipped.push_back(fmt::format("{}: {}", name, built.error().message));
            return {};
        }
        PrefixRow row;
        row.name = name;
        row.build = seconds_since(start);
        row.fpr = built->report.expected_fpr;
        start = std::chrono::steady_clock::now();
        SIEVE_ASSIGN(kernel::FilterMap map, kernel::FilterMap::create(built->image, "bench"));
        row.load = seconds_since(start);
        row.bytes = map_bytes(map.fd());
        table_.rows.push_back(std::move(row));
        maps_.push_back(std::move(map));
        return {};
    }

    Status load() {
        std::vector<bench_prefix> trie;
        std::vector<bench_prefix6> trie6;
        for (const AddressRange& range : ranges_)
            split_into_prefixes(range, [&](uint128 first, std::uint32_t length) {
                if (ipv4_)
                    trie.push_back(
                        {.length = length - 96, .address = htonl(static_cast<std::uint32_t>(first))});
                else
                    trie6.push_back({.length = length,
                                     .address = {htonl(static_cast<std::uint32_t>(first >> 96)),
                                                 htonl(static_cast<std::uint32_t>(first >> 64)),
                                                 htonl(static_cast<std::uint32_t>(first >> 32)),
                                                 htonl(static_cast<std::uint32_t>(first))}});
            });
        BenchSizes sizes;
        sizes.keys = std::max<std::size_t>(1, trie.size());
        sizes.lpm6 = std::max<std::size_t>(1, trie6.size());
        sizes.questions = 2 * questions_each;
        sizes.lru = false;
        SIEVE_ASSIGN(BenchObject object, BenchObject::load(sizes));
        object_.emplace(std::move(object));
        const auto& maps = object_->skeleton().maps;
        const auto& programs = object_->skeleton().progs;
        for (std::uint32_t index = 0; index < maps_.size(); index++) {
            SIEVE_TRY(object_->put_filter(index, maps_[index].fd()));
            runners_.push_back({bpf_program__fd(programs.bench_ask_filter), index});
        }
        progress_("LPM trie", 0);
        PrefixRow row;
        row.name = "BPF LPM trie";
        const int fd = bpf_map__fd(ipv4_ ? maps.bench_lpm : maps.bench_lpm6);
        // The map counts 29 bytes a prefix, but a node takes 64 of slab, and most prefixes need an inner
        // node.
        const std::uint64_t before = kernel_memory();
        SIEVE_ASSIGN(row.load, ipv4_ ? fill_prefixes(fd, trie) : fill_prefixes(fd, trie6));
        row.bytes = std::max(map_bytes(fd), std::max(kernel_memory(), before) - before);
        table_.rows.push_back(std::move(row));
        runners_.push_back({bpf_program__fd(ipv4_ ? programs.bench_ask_lpm : programs.bench_ask_lpm6), 0});
        base_ = {bpf_program__fd(programs.bench_ask_nothing), 0};
        return write_questions(bpf_map__fd(maps.bench_questions));
    }

    Status write_questions(int map) const {
        std::mt19937_64 random(table_.prefixes);
        const auto member = [&] {
            const AddressRange& range = ranges_[random() % ranges_.size()];
            const uint128 span = range.last - range.first;
            const uint128 draw = address_number(random(), random());
            return range.first + (span == ~uint128{0} ? draw : draw % (span + 1));
        };
        const auto stranger = [&] {
            if (ipv4_) return uint128{sieve_v4_mapped(static_cast<std::uint32_t>(random()))};
            constexpr std::uint32_t kept = 24;
            return (member() >> (128 - kept) << (128 - kept)) | (address_number(random(), random()) >> kept);
        };
        std::uint32_t index = 0;
        for (const bool asks_members : {false, true})
            for (std::uint64_t i = 0; i < questions_each; i++) {
                uint128 address = asks_members ? member() : stranger();
                constexpr int most_draws = 10'000;
                for (int draws = 0; !asks_members && is_member(members_, address); draws++) {
                    if (draws == most_draws) return bad_input("the list leaves no room for non-members");
                    address = stranger();
                }
                const bench_question question{static_cast<std::uint64_t>(address >> 64),
                                              static_cast<std::uint64_t>(address)};
                if (bpf_map_update_elem(map, &index, &question, BPF_ANY) != 0)
                    return kernel::refusal("writing the benchmark's questions", errno);
                index++;
            }
        return {};
    }

    // Returns nanoseconds per lookup.
    Result<double> sample(const Runner& runner, std::uint32_t repeat) const {
        const Frame frame{};
        SIEVE_ASSIGN(const double run, run_program(runner.program, frame, repeat));
        return run / object_->control().lookups;
    }

    void choose(const Runner& runner, int traffic, int spacing) const {
        bench_control& control = object_->control();
        control.index = runner.index;
        control.apart = static_cast<Spacing>(spacing) == Spacing::apart ? 1 : 0;
        control.first = static_cast<std::uint64_t>(traffic) * questions_each;
        control.indices = questions_each;
    }

    Status measure_row(Runner& runner, PrefixRow& row) const {
        for (int traffic = 0; traffic < 2; traffic++)
            for (int spacing = 0; spacing < spacings; spacing++) {
                choose(runner, traffic, spacing);
                // Brings back what the others have displaced from the caches.
                SIEVE_TRY(sample(runner, runner.repeat));
                object_->control().found = 0;
                SIEVE_ASSIGN(const double nanoseconds, sample(runner, runner.repeat));
                row.times[static_cast<std::size_t>(traffic)][static_cast<std::size_t>(spacing)].push_back(
                    nanoseconds);
                runner.asked[static_cast<std::size_t>(traffic)] +=
                    std::uint64_t{runner.repeat} * object_->control().lookups;
                runner.found[static_cast<std::size_t>(traffic)] += object_->control().found;
            }
        return {};
    }

    Status measure() {
        const auto calibrate = [&](Runner& runner) -> Status {
            choose(runner, 0, 1);
            SIEVE_ASSIGN(const double first, sample(runner, 64));
            runner.repeat = static_cast<std::uint32_t>(std::clamp(
                options_.milliseconds * 1e6 / (std::max(first, 1.0) * object_->control().lookups), 4.0, 1e5));
            return {};
        };
        SIEVE_TRY(calibrate(base_));
        for (Runner& runner : runners_) SIEVE_TRY(calibrate(runner));
        for (std::uint32_t round = 0; round < options_.rounds; round++) {
            SIEVE_TRY(measure_row(base_, table_.base));
            for (std::size_t i = 0; i < runners_.size(); i++)
                SIEVE_TRY(measure_row(runners_[i], table_.rows[i]));
            progress_(options_.workload, (round + 1.0) / options_.rounds);
        }
        for (std::size_t i = 0; i < runners_.size(); i++)
            for (std::size_t traffic = 0; traffic < 2; traffic++)
                table_.rows[i].found[traffic] = static_cast<double>(runners_[i].found[traffic]) /
                                                static_cast<double>(runners_[i].asked[traffic]);
        return {};
    }

    // Refuses to report a contestant that answers wrongly.
    Status check() const {
        for (const PrefixRow& row : table_.rows)
            if (row.found[1] < 1 || row.found[0] > 3 * row.fpr.value_or(0))
                return bad_input(
                    fmt::format("{}: {} of members and {} of non-members were found, so its times "
                                "mean nothing",
                                row.name, row.found[1], row.found[0]));
        return {};
    }

    const PrefixOptions& options_;
    const Progress& progress_;
    PrefixTable table_;
    std::vector<AddressRange> ranges_;
    AddressSet members_;
    bool ipv4_ = true;
    std::vector<kernel::FilterMap> maps_; // entry i belongs to table_.rows[i]
    std::vector<Runner> runners_;         // likewise, the trie's last
    Runner base_{};
    std::optional<BenchObject> object_;
};

} // namespace

Rounds PrefixTable::net(const PrefixRow& row, Traffic traffic, Spacing spacing) const {
    const auto t = static_cast<std::size_t>(traffic);
    const auto s = static_cast<std::size_t>(spacing);
    return minus(row.times[t][s], base.times[t][s]);
}

Result<PrefixTable> bench_prefixes(const PrefixOptions& options, const Progress& progress) {
    return Bench(options, progress).run();
}

} // namespace sieve::bench
