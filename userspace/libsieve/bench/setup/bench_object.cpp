// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/bench_object.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <sieve/policy.h>

#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/host/refusal.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

// The number behind "NAME:" in a file of such lines; 0 if there is no such line.
std::uint64_t number_in(const std::string& path, const std::string& name) {
    std::ifstream file(path);
    std::string word;
    std::uint64_t value = 0;
    while (file >> word)
        if (word == name + ":" && file >> value) return value;
    return 0;
}

void leave_out(bpf_map* map, std::initializer_list<bpf_program*> programs) {
    bpf_map__set_autocreate(map, false);
    for (bpf_program* program : programs) bpf_program__set_autoload(program, false);
}

void size(bpf_map* map, std::uint64_t entries) {
    bpf_map__set_max_entries(map, static_cast<std::uint32_t>(entries));
}

void size(bpf_map* map, const KernelBloom& bloom) {
    size(map, bloom.max_entries);
    bpf_map__set_map_extra(map, bloom.hashes);
}

} // namespace

const char* traffic_name(Traffic traffic) {
    return std::array{"non_members", "members", "half"}[static_cast<std::size_t>(traffic)];
}

const char* spacing_name(Spacing spacing) {
    return std::array{"together", "apart"}[static_cast<std::size_t>(spacing)];
}

void BenchObject::Destroy::operator()(sieve_bench_bpf* skeleton) const {
    sieve_bench_bpf::destroy(skeleton);
}

bench_control& BenchObject::control() const {
    return skeleton_->data_bench->bench_control;
}

Result<BenchObject> BenchObject::load(const BenchSizes& sizes) {
    const kernel::LogCapture log;
    std::unique_ptr<sieve_bench_bpf, Destroy> skeleton(sieve_bench_bpf::open());
    if (!skeleton) return kernel::refusal("opening the benchmark's programs", errno);
    auto& maps = skeleton->maps;
    auto& programs = skeleton->progs;
    if (sizes.floor_map >= 0)
        if (const int error = bpf_map__reuse_fd(maps.bench_lines, sizes.floor_map); error != 0)
            return kernel::refusal("sharing a filter's map with the benchmark", error);
    size(maps.bench_hash, sizes.keys);
    size(maps.bench_lru, sizes.keys);
    size(maps.bench_lpm, sizes.keys);
    size(maps.bench_lpm6, sizes.lpm6);
    size(maps.bench_questions, sizes.questions);
    size(maps.bench_bloom_plain, sizes.plain);
    size(maps.bench_bloom_tuned, sizes.tuned);
    size(maps.bench_bloom_equal, sizes.equal);
    if (!sizes.peers) {
        leave_out(maps.bench_hash, {programs.bench_hash_lookup});
        leave_out(maps.bench_bloom_plain, {programs.bench_bloom_plain_lookup});
        leave_out(maps.bench_bloom_tuned, {programs.bench_bloom_tuned_lookup});
        leave_out(maps.bench_bloom_equal, {programs.bench_bloom_equal_lookup});
    }
    if (!sizes.peers || !sizes.lru) leave_out(maps.bench_lru, {programs.bench_lru_lookup});
    if (!sizes.peers || !sizes.lpm)
        leave_out(maps.bench_lpm, {programs.bench_lpm_lookup, programs.bench_ask_lpm});
    bpf_program__set_autoload(programs.bench_verified, sizes.verified);
    if (sizes.only_floor) {
        bpf_program* program = nullptr;
        bpf_object__for_each_program(program, skeleton->obj)
            bpf_program__set_autoload(program, program == programs.bench_touch_one);
    }
    if (const int error = sieve_bench_bpf::load(skeleton.get()); error != 0) {
        auto refused = kernel::refusal("loading the benchmark's programs", error);
        refused.value().message += "\n" + log.verifier_log(8);
        return refused;
    }
    BenchObject object(std::move(skeleton));
    bench_control& control = object.control();
    control.state = 1;
    control.lookups = 256;
    control.buckets = static_cast<std::uint32_t>(sizes.lines);
    for (std::size_t i = 0; i < SIEVE_HASH_KEY_WORDS; i++)
        control.hash_key[i] = 0x9e3779b97f4a7c15ULL * (2 * i + 1);
    return object;
}

Status BenchObject::put_filter(std::uint32_t index, int map) const {
    if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.sieve_sets), &index, &map, BPF_ANY) != 0)
        return kernel::refusal("putting a filter into the table of sets", errno);
    return {};
}

Status BenchObject::put_exact_set(std::uint32_t index, int map) const {
    if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.sieve_exact), &index, &map, BPF_ANY) != 0)
        return kernel::refusal("putting keys into the table of exact sets", errno);
    return {};
}

void BenchObject::draw(Traffic traffic, std::uint64_t keys) const {
    bench_control& control = this->control();
    control.first = traffic == Traffic::non_members ? keys : 0;
    control.indices = traffic == Traffic::non_members ? (1ULL << 32) - keys
                      : traffic == Traffic::members   ? keys
                                                      : 2 * keys;
}

Result<double> run_program(int program, std::span<const std::uint8_t> frame, std::uint32_t repeat,
                           std::optional<std::uint32_t> wanted) {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.data_in = frame.data();
    options.data_size_in = static_cast<std::uint32_t>(frame.size());
    options.repeat = static_cast<int>(repeat);
    int error = 0;
    do {
        error = bpf_prog_test_run_opts(program, &options);
    } while (error != 0 && errno == EINTR);
    if (error != 0) return kernel::refusal("running a benchmark's program", error);
    if (wanted && options.retval != *wanted)
        return kernel_refused(
            fmt::format("a benchmark's program returned {}: expected {}", options.retval, *wanted));
    return static_cast<double>(options.duration);
}

std::uint64_t map_bytes(int fd) {
    return number_in(fmt::format("/proc/self/fdinfo/{}", fd), "memlock");
}

std::uint64_t available_memory() {
    return number_in("/proc/meminfo", "MemAvailable") * 1024;
}

} // namespace sieve::bench
