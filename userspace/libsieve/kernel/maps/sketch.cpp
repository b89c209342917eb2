// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/sketch.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "libsieve/analysis/less_hashing.hpp"
#include "libsieve/kernel/host/grace_period.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/map_indices.hpp"
#include "libsieve/util/random/secret.hpp"

namespace sieve::kernel {

namespace {

std::uint32_t cpus() {
    return static_cast<std::uint32_t>(std::max(1, libbpf_num_possible_cpus()));
}

std::uint32_t sketch_lines() {
    return sieve_sketch_cpu_line(cpus());
}

// The lines of a sketch's map, mapped into this process.
class Lines {
  public:
    static Result<Lines> map(int fd, int protection) {
        const std::size_t bytes = tally_bytes();
        void* pages = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
        if (pages == MAP_FAILED) return refusal("mapping the sketch of heavy keys", errno);
        return Lines(static_cast<sieve_line*>(pages), bytes);
    }

    [[nodiscard]] sieve_line* begin() const { return lines_.get(); }

  private:
    struct Unmap {
        std::size_t bytes;
        void operator()(sieve_line* lines) const { ::munmap(lines, bytes); }
    };
    Lines(sieve_line* lines, std::size_t bytes) : lines_(lines, Unmap{bytes}) {}

    std::unique_ptr<sieve_line, Unmap> lines_;
};

std::uint64_t counter(const sieve_line* lines, std::uint32_t cpu, std::uint32_t row, std::uint32_t column) {
    const std::uint32_t line = sieve_sketch_cpu_line(cpu) + SIEVE_SKETCH_FIRST_ROW +
                               row * SIEVE_SKETCH_ROW_LINES + column / SIEVE_LINE_WORDS;
    return lines[line].word[column % SIEVE_LINE_WORDS];
}

// The estimate over all CPUs. Each row is summed over the CPUs first, which gives the estimate of a single
// sketch that saw all packets.
std::uint64_t estimate(const sieve_line* lines, const sieve_key& key, std::uint32_t slot) {
    std::uint32_t column = sieve_sketch_sum(lines, lines + 1, &key, slot) % SIEVE_SKETCH_WIDTH;
    const sieve_line* second = lines + SIEVE_SKETCH_HASH_LINES;
    const std::uint32_t step = sieve_sketch_sum(second, second + 1, &key, slot) % SIEVE_SKETCH_WIDTH;
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t row = 0; row < SIEVE_SKETCH_DEPTH; row++) {
        std::uint64_t sum = 0;
        for (std::uint32_t cpu = 0; cpu < cpus(); cpu++) sum += counter(lines, cpu, row, column);
        least = std::min(least, sum);
        column = sieve_sketch_next(column, step);
    }
    return least;
}

} // namespace

double tally_failure() {
    return analysis::less_hashing::count_min_overestimate_bound(SIEVE_SKETCH_WIDTH, SIEVE_SKETCH_DEPTH,
                                                                tally_error);
}

bool is_tallying(const Instance& instance) {
    return (instance.control().watch & SIEVE_WATCH_TALLY) != 0;
}

std::uint64_t tally_bytes() {
    return std::uint64_t{sketch_lines()} * sizeof(sieve_line);
}

Status start_tally(const Instance& instance) {
    LIBBPF_OPTS(bpf_map_create_opts, options);
    options.map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP;
    const UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "sieve_sketch", sizeof(std::uint32_t),
                                     sizeof(sieve_line), sketch_lines(), &options));
    if (!fd) return refusal("a BPF map to count keys in", errno);
    std::array<std::uint64_t, SIEVE_SKETCH_LINES * SIEVE_LINE_WORDS> secret{};
    SIEVE_TRY(draw_secret(std::nullopt, secret));
    {
        SIEVE_ASSIGN(const Lines lines, Lines::map(fd.get(), PROT_READ | PROT_WRITE));
        for (std::size_t i = 0; i < secret.size(); i++)
            lines.begin()[i / SIEVE_LINE_WORDS].word[i % SIEVE_LINE_WORDS] = secret[i];
    }
    SIEVE_ASSIGN(const std::uint32_t id, map_id(fd.get()));
    SIEVE_ASSIGN(const UniqueFd outer, open_map(instance.rare().sketches));
    SIEVE_TRY(put_maps(outer.get(), {.indices = {0}, .ids = {id}, .gone = {}}));
    volatile sieve_control& control = instance.control();
    control.sketch_id = id;
    control.sketch_since = static_cast<std::uint64_t>(std::time(nullptr));
    control.watch = control.watch | SIEVE_WATCH_TALLY;
    return {};
}

Status stop_tally(const Instance& instance) {
    volatile sieve_control& control = instance.control();
    control.watch = control.watch & ~std::uint32_t{SIEVE_WATCH_TALLY};
    control.sketch_id = 0;
    SIEVE_ASSIGN(const UniqueFd outer, open_map(instance.rare().sketches));
    return clear_map(outer.get(), 0);
}

Result<Tally> read_tally(const Instance& instance, std::size_t most) {
    Tally tally;
    const std::uint32_t id = instance.control().sketch_id;
    if (id == 0) return tally;
    tally.since = instance.control().sketch_since;
    SIEVE_ASSIGN(const UniqueFd fd, open_map(id));
    SIEVE_ASSIGN(const Lines mapped, Lines::map(fd.get(), PROT_READ));
    const sieve_line* lines = mapped.begin();
    using Item = std::tuple<std::uint32_t, std::array<std::uint64_t, SIEVE_KEY_WORDS>>;
    std::map<Item, HeavyKey> items;
    for (std::uint32_t cpu = 0; cpu < cpus(); cpu++) {
        const sieve_line* part = lines + sieve_sketch_cpu_line(cpu);
        tally.total += reinterpret_cast<const sieve_sketch_cpu*>(part)->total;
        const auto* candidates =
            reinterpret_cast<const sieve_candidate*>(part + SIEVE_SKETCH_FIRST_CANDIDATE);
        for (std::uint32_t i = 0; i < SIEVE_SKETCH_CANDIDATES; i++) {
            const sieve_candidate candidate = candidates[i];
            if (candidate.estimate == 0) continue;
            Item item{candidate.slot, {}};
            std::copy(std::begin(candidate.key.word), std::end(candidate.key.word),
                      std::get<1>(item).begin());
            items.try_emplace(item, HeavyKey{candidate.key, candidate.slot, 0});
        }
    }
    for (auto& [item, heavy] : items) {
        heavy.packets = estimate(lines, heavy.key, heavy.slot);
        tally.keys.push_back(heavy);
    }
    std::stable_sort(tally.keys.begin(), tally.keys.end(),
                     [](const HeavyKey& a, const HeavyKey& b) { return a.packets > b.packets; });
    if (tally.keys.size() > most) tally.keys.resize(most);
    return tally;
}

} // namespace sieve::kernel
