// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/lookup_bench.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <sieve/policy.h>

#include "bpf/bench/bench_control.h"
#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/frames.hpp"
#include "libsieve/bench/setup/peers.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

// The kernel allocates each prefix and each inner node separately.
constexpr std::uint64_t most_prefixes = 10'000'000;
// The most that a hash map entry takes, with its share of the buckets. Tells which maps would not fit.
constexpr std::uint64_t bytes_per_entry = 120;

constexpr std::uint64_t most_keys_to_rebalance_slowly = 2'000'000;

// With more keys only the reference is built and asked, so that the other contestants have the memory.
constexpr std::uint64_t most_keys_of_all_kinds = 20'000'000;

// Whether this filter is the reference for the others: the one that is built if nobody chooses.
bool is_reference(const KindOptions& form) {
    const FilterKind& standard = standard_kind();
    return form.kind == standard.facts().number &&
           standard.choices_of(form) == standard.facts().choices.standard;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A contestant and how to run it.
struct Runner {
    int program = -1;
    std::uint32_t index = 0; // of a filter: its map index
    std::uint32_t repeat = 1;
    std::uint64_t asked[traffics]{}, found[traffics]{};
    std::optional<BenchObject> floor{}; // reads random lines of the same map
    std::uint32_t floor_repeat = 1;
};

// A measurement of a filter alternates with its floor so often. How near the caches a map's lines are changes
// from moment to moment, so only turns as short as these find both in the same state.
constexpr std::uint32_t turns = 8;

class Bench {
  public:
    Bench(const LookupOptions& options, const Progress& progress) : options_(options), progress_(progress) {
        table_.keys = options.keys;
        table_.bits_per_key = options.bits_per_key;
    }

    Result<LookupTable> run() {
        SIEVE_TRY(build_filters());
        SIEVE_TRY(load());
        SIEVE_TRY(fill_peers());
        SIEVE_TRY(measure());
        SIEVE_TRY(check());
        return std::move(table_);
    }

  private:
    void add(Contestant contestant, const bpf_program* program, std::uint32_t index = 0) {
        table_.contestants.push_back(std::move(contestant));
        runners_.push_back({.program = bpf_program__fd(program), .index = index});
    }

    void add_baseline(const std::string& name, Role role, std::uint64_t bytes, const bpf_program* program) {
        Contestant contestant;
        contestant.name = name;
        contestant.role = role;
        contestant.bytes = bytes;
        add(std::move(contestant), program);
    }

    // Builds a filter of every kind that packets can ask, in the forms that are worth it.
    Status build_filters() {
        for (const FilterKind* kind : filter_kinds())
            for (const KindOptions& form : kind->forms())
                if (options_.keys <= most_keys_of_all_kinds || is_reference(form))
                    SIEVE_TRY(build_filter(*kind, form));
        if (options_.keys > most_keys_of_all_kinds)
            table_.skipped.push_back(
                fmt::format("other filters: compared at up to {} keys", most_keys_of_all_kinds));
        return {};
    }

    Status build_filter(const FilterKind& kind, const KindOptions& form) {
        const KindFacts& facts = kind.facts();
        BuildOptions build;
        if (kind.exact() == nullptr)
            build.bits_per_key = std::max(options_.bits_per_key, facts.least_bits_per_key);
        build.kind = form;
        // Rebalancing takes a minute here, and the cost of a lookup does not depend on it.
        const bool online = facts.rebalances_slowly && options_.keys > most_keys_to_rebalance_slowly;
        if (online) build.kind.effort = Effort::fast;
        build.label = "benchmark";
        auto start = std::chrono::steady_clock::now();
        SIEVE_ASSIGN(BuiltSet built, build_set(member_keys(options_.keys), build, progress_));
        Contestant contestant;
        contestant.build = seconds_since(start);
        contestant.name = fmt::format("{}, {}", facts.name, kind.count_choices(built.image.lookup().choices));
        contestant.role = Role::filter;
        contestant.reference = is_reference(form);
        contestant.settings = facts.takes_hashes ? fmt::format("k={}{}", built.image.lookup().hashes,
                                                               online ? ", effort fast" : "")
                                                 : fmt::format("{:.1f} bits/key", built.report.bits_per_key);
        contestant.fpr = built.report.expected_fpr;
        start = std::chrono::steady_clock::now();
        SIEVE_ASSIGN(kernel::FilterMap map, kernel::FilterMap::create(built.image, "bench"));
        contestant.load = seconds_since(start);
        contestant.bytes = map_bytes(map.fd());
        lines_.push_back(built.image.filter().size());
        if (contestant.reference) {
            reference_lines_ = built.image.lookup().buckets;
            reference_ = filters_.size();
            SIEVE_TRY(build_exact_set_of(built.image));
        }
        filters_.push_back(std::move(contestant));
        maps_.push_back(std::move(map));
        return {};
    }

    // The keys behind the reference, for verification.
    Status build_exact_set_of(const Image& image) {
        if (options_.keys > most_keys_of_all_kinds) return {};
        std::vector<sieve_key> keys(options_.keys);
        for (std::uint64_t i = 0; i < options_.keys; i++)
            keys[i].word[1] = sieve_v4_mapped(bench_address(static_cast<std::uint32_t>(i)));
        SIEVE_ASSIGN(kernel::ExactSet exact, kernel::ExactSet::create(image, keys, "bench"));
        exact_.emplace(std::move(exact));
        return {};
    }

    // The reference again, now with verification.
    Status add_verified() {
        if (!exact_) return {};
        SIEVE_TRY(object_->put_exact_set(static_cast<std::uint32_t>(reference_), exact_->fd()));
        const Contestant& reference = filters_[reference_];
        Contestant contestant;
        contestant.name = "xorsat, verified";
        contestant.role = Role::filter;
        contestant.bytes = reference.bytes + map_bytes(exact_->fd());
        contestant.settings = fmt::format("{:.1f} bits/key", 8 * static_cast<double>(contestant.bytes) /
                                                                 static_cast<double>(options_.keys));
        return add_filter(std::move(contestant), object_->skeleton().progs.bench_verified, reference_);
    }

    Status load() {
        const Contestant& reference = filters_[reference_];
        BenchSizes sizes;
        sizes.keys = options_.keys;
        sizes.lines = reference_lines_;
        sizes.floor_map = maps_[reference_].fd();
        sizes.lpm = options_.keys <= most_prefixes;
        sizes.plain = kernel_bloom_plain(options_.keys, *reference.fpr);
        sizes.tuned = kernel_bloom_tuned(options_.keys, *reference.fpr);
        sizes.equal = kernel_bloom_of_bits(options_.keys, sizes.lines * SIEVE_LINE_BITS);
        const std::uint64_t memory = available_memory();
        sizes.peers = options_.keys * bytes_per_entry < memory;
        sizes.verified = exact_.has_value();
        sizes.lru = options_.keys * bytes_per_entry * 2 < memory;
        if (!sizes.peers)
            table_.skipped.push_back("the kernel's own sets: they would not fit into memory");
        else if (!sizes.lru)
            table_.skipped.push_back("LRU hash: would not fit into memory beside the hash");
        if (!sizes.lpm)
            table_.skipped.push_back(fmt::format("LPM trie: compared at up to {} prefixes", most_prefixes));
        SIEVE_ASSIGN(BenchObject object, BenchObject::load(sizes));
        object_.emplace(std::move(object));
        sizes_ = sizes;

        const auto& programs = object_->skeleton().progs;
        const int lines = bpf_map__fd(object_->skeleton().maps.bench_lines);
        add_baseline("empty", Role::empty, 0, programs.bench_empty);
        add_baseline("key and hash", Role::base, 0, programs.bench_key_hash);
        add_baseline("touch one line", Role::floor, map_bytes(lines), programs.bench_touch_one);
        add_baseline("touch two lines", Role::touch, map_bytes(lines), programs.bench_touch_two);
        for (std::uint32_t index = 0; index < filters_.size(); index++) {
            SIEVE_TRY(object_->put_filter(index, maps_[index].fd()));
            SIEVE_TRY(add_filter(filters_[index], programs.bench_filter, index));
        }
        return add_verified();
    }

    // Adds a contestant that asks the filter at that index, and its floor.
    Status add_filter(Contestant contestant, const bpf_program* program, std::size_t index) {
        BenchSizes floor = BenchSizes::without_peers(lines_[index], maps_[index].fd());
        floor.only_floor = true;
        SIEVE_ASSIGN(BenchObject floor_object, BenchObject::load(floor));
        add(std::move(contestant), program, static_cast<std::uint32_t>(index));
        runners_.back().floor.emplace(std::move(floor_object));
        return {};
    }

    // Adds a kernel map that `fill` fills.
    template <class Fill>
    Status add_peer(const std::string& name, const std::string& settings, std::optional<double> fpr,
                    bpf_map* map, const bpf_program* program, Fill fill,
                    std::span<const std::uint32_t> addresses) {
        progress_(name, 0);
        Contestant contestant;
        contestant.name = name;
        contestant.settings = settings;
        contestant.fpr = fpr;
        SIEVE_ASSIGN(const double load, fill(bpf_map__fd(map), addresses));
        contestant.load = load;
        contestant.bytes = map_bytes(bpf_map__fd(map));
        add(std::move(contestant), program);
        return {};
    }

    Status fill_peers() {
        if (!sizes_.peers) return {};
        const std::vector<std::uint32_t> addresses = member_addresses(options_.keys);
        const auto& maps = object_->skeleton().maps;
        const auto& programs = object_->skeleton().progs;
        const auto describe = [&](const KernelBloom& settings) {
            return fmt::format("k={}, {:.1f} bits/key", settings.hashes,
                               static_cast<double>(settings.bits) / static_cast<double>(options_.keys));
        };
        SIEVE_TRY(add_peer("kernel Bloom, equal FPR, max_entries = keys", describe(sizes_.plain),
                           sizes_.plain.fpr, maps.bench_bloom_plain, programs.bench_bloom_plain_lookup,
                           fill_bloom, addresses));
        SIEVE_TRY(add_peer("kernel Bloom, equal FPR, tuned", describe(sizes_.tuned), sizes_.tuned.fpr,
                           maps.bench_bloom_tuned, programs.bench_bloom_tuned_lookup, fill_bloom, addresses));
        SIEVE_TRY(add_peer("kernel Bloom, equal memory", describe(sizes_.equal), sizes_.equal.fpr,
                           maps.bench_bloom_equal, programs.bench_bloom_equal_lookup, fill_bloom, addresses));
        SIEVE_TRY(add_peer("BPF hash", "preallocated, 4+1 bytes", {}, maps.bench_hash,
                           programs.bench_hash_lookup, fill_hash, addresses));
        if (sizes_.lru)
            SIEVE_TRY(add_peer("BPF LRU hash", "full, 4+1 bytes", {}, maps.bench_lru,
                               programs.bench_lru_lookup, fill_hash, addresses));
        if (sizes_.lpm)
            SIEVE_TRY(add_peer("BPF LPM trie", "/32, 8+1 bytes", {}, maps.bench_lpm,
                               programs.bench_lpm_lookup, fill_lpm, addresses));
        return {};
    }

    // Runs `repeat` times. Returns nanoseconds per lookup.
    Result<double> sample(int program, std::uint32_t repeat) const {
        const Frame frame{};
        SIEVE_ASSIGN(const double run, run_program(program, frame, repeat));
        return run / object_->control().lookups;
    }
    Result<double> sample(const Runner& runner, std::uint32_t repeat) const {
        return sample(runner.program, repeat);
    }
    static int floor_program(const Runner& runner) {
        return bpf_program__fd(runner.floor->skeleton().progs.bench_touch_one);
    }

    // How many repetitions last as long as one measurement.
    [[nodiscard]] std::uint32_t repetitions(double nanoseconds) const {
        return static_cast<std::uint32_t>(std::clamp(
            options_.milliseconds * 1e6 / (std::max(nanoseconds, 1.0) * object_->control().lookups), 4.0,
            1e5));
    }

    // Chooses what the next runs draw, and whether their lookups overlap.
    void choose(Runner& runner, Traffic traffic, Spacing spacing) {
        const auto set = [&](const BenchObject& object) {
            object.control().apart = spacing == Spacing::apart ? 1 : 0;
            object.draw(traffic, options_.keys);
        };
        object_->control().index = runner.index;
        set(*object_);
        if (runner.floor) set(*runner.floor);
    }

    Status measure() {
        for (Runner& runner : runners_) { // find out how many repetitions last long enough
            choose(runner, Traffic::non_members, Spacing::apart);
            SIEVE_ASSIGN(const double first, sample(runner, 8));
            runner.repeat = repetitions(first);
            if (!runner.floor) continue;
            SIEVE_ASSIGN(const double floor, sample(floor_program(runner), 8));
            runner.floor_repeat = repetitions(floor);
        }
        // The order is reversed from round to round, so that no contestant always comes first. The peers come
        // last, since their large maps drive the filters' lines out of the caches.
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < runners_.size(); i++)
            if (table_.contestants[i].role != Role::peer) order.push_back(i);
        for (std::uint32_t round = 0; round < options_.rounds; round++) {
            for (const std::size_t i : order) SIEVE_TRY(measure_all(i));
            for (std::size_t i = 0; i < runners_.size(); i++)
                if (table_.contestants[i].role == Role::peer) SIEVE_TRY(measure_all(i));
            std::ranges::reverse(order);
            progress_(fmt::format("{} keys", options_.keys), (round + 1.0) / options_.rounds);
        }
        for (std::size_t i = 0; i < runners_.size(); i++)
            for (int t = 0; t < traffics; t++)
                if (runners_[i].asked[t] > 0)
                    table_.contestants[i].found[t] =
                        static_cast<double>(runners_[i].found[t]) / static_cast<double>(runners_[i].asked[t]);
        return {};
    }

    // Makes every kind of measurement of one contestant, with its lines in the caches as far as they fit.
    Status measure_all(std::size_t index) {
        SIEVE_TRY(warm_up(index));
        for (int t = 0; t < traffics; t++)
            for (int s = 0; s < spacings; s++)
                SIEVE_TRY(measure_one(index, static_cast<Traffic>(t), static_cast<Spacing>(s)));
        return {};
    }

    // Brings the contestant's lines back into the caches, as far as they fit. The others have driven the
    // lines out, but a filter in service has the caches to itself. How many runs are enough depends on what
    // was cached before, so the warm-up ends when runs get no faster.
    Status warm_up(std::size_t index) {
        constexpr double often = 8; // each line, on average, at a time
        constexpr double line_bytes = 64;
        constexpr double most_milliseconds = 100;
        constexpr int least_times = 4;
        constexpr int most_times = 12;
        constexpr double no_faster = 0.98;
        Runner& runner = runners_[index];
        choose(runner, Traffic::half, Spacing::together);
        const double in_one_run = object_->control().lookups;
        const double lookups =
            std::min(often * static_cast<double>(table_.contestants[index].bytes) / line_bytes,
                     most_milliseconds / options_.milliseconds * runner.repeat * in_one_run);
        const std::uint32_t repeat = std::max(1U, static_cast<std::uint32_t>(lookups / in_one_run));
        double before = std::numeric_limits<double>::infinity();
        for (int i = 0; i < most_times; i++) {
            SIEVE_ASSIGN(const double nanoseconds, sample(runner, repeat));
            if (i >= least_times && nanoseconds > no_faster * before) break;
            before = nanoseconds;
        }
        return {};
    }

    // Makes one measurement. A run half as long comes first and brings back what the previous measurement
    // displaced.
    Status measure_one(std::size_t index, Traffic traffic, Spacing spacing) {
        Runner& runner = runners_[index];
        Contestant& contestant = table_.contestants[index];
        bench_control& control = object_->control();
        choose(runner, traffic, spacing);
        SIEVE_TRY(sample(runner, std::max(1U, runner.repeat / 2)));
        control.found = 0;
        const std::uint32_t now = runner.floor ? turns : 1;
        const std::uint32_t repeat = std::max(1U, runner.repeat / now);
        double nanoseconds = 0;
        double floor = 0;
        for (std::uint32_t turn = 0; turn < now; turn++) {
            if (runner.floor) {
                SIEVE_ASSIGN(const double own,
                             sample(floor_program(runner), std::max(1U, runner.floor_repeat / now)));
                floor += own / now;
            }
            SIEVE_ASSIGN(const double own, sample(runner, repeat));
            nanoseconds += own / now;
        }
        const auto t = static_cast<std::size_t>(traffic), s = static_cast<std::size_t>(spacing);
        contestant.times.of[t][s].push_back(nanoseconds);
        if (runner.floor) contestant.floor.of[t][s].push_back(floor);
        runner.asked[t] += std::uint64_t{repeat} * now * control.lookups;
        runner.found[t] += control.found;
        return {};
    }

    // Refuses to report a contestant that answers wrongly.
    Status check() const {
        for (const Contestant& contestant : table_.contestants) {
            if (contestant.role != Role::filter && contestant.role != Role::peer) continue;
            const bool forgets = contestant.name == "BPF LRU hash"; // by design, when it is full
            const double members = contestant.found[static_cast<std::size_t>(Traffic::members)];
            const double non_members = contestant.found[static_cast<std::size_t>(Traffic::non_members)];
            if ((members < 1 && !forgets) || non_members > std::max(0.01, 3 * contestant.fpr.value_or(0)))
                return bad_input(
                    fmt::format("{}: {} of members and {} of non-members were found, so its times "
                                "mean nothing",
                                contestant.name, members, non_members));
        }
        return {};
    }

    const LookupOptions& options_;
    const Progress& progress_;
    LookupTable table_;
    std::vector<Contestant> filters_;
    std::vector<kernel::FilterMap> maps_;   // entry i belongs to filters_[i]
    std::vector<std::uint64_t> lines_;      // likewise
    std::size_t reference_ = 0;             // index into filters_ of what the others are compared with
    std::uint64_t reference_lines_ = 1;     // from which it draws a key's first line
    std::optional<kernel::ExactSet> exact_; // the keys behind the reference
    std::vector<Runner> runners_;           // entry i belongs to table_.contestants[i]
    BenchSizes sizes_;
    std::optional<BenchObject> object_;
};

} // namespace

const Contestant& LookupTable::find(Role role) const {
    return *std::ranges::find(contestants, role, &Contestant::role);
}

Rounds LookupTable::net(const Contestant& contestant, Traffic traffic, Spacing spacing) const {
    return minus(contestant.times.at(traffic, spacing), find(Role::base).times.at(traffic, spacing));
}

const Contestant& LookupTable::reference() const {
    return *std::ranges::find(contestants, true, &Contestant::reference);
}

Rounds LookupTable::to_reference(const Contestant& contestant, Traffic traffic, Spacing spacing) const {
    return ratio(net(contestant, traffic, spacing), net(reference(), traffic, spacing));
}

Rounds LookupTable::to_floor(const Contestant& contestant, Traffic traffic, Spacing spacing) const {
    const Rounds& own = contestant.floor.at(traffic, spacing);
    const Rounds& floor = own.empty() ? find(Role::floor).times.at(traffic, spacing) : own;
    return ratio(net(contestant, traffic, spacing),
                 minus(floor, find(Role::base).times.at(traffic, spacing)));
}

Result<LookupTable> bench_lookups(const LookupOptions& options, const Progress& progress) {
    return Bench(options, progress).run();
}

} // namespace sieve::bench
