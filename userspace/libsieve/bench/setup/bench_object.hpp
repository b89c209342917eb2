// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The loaded copy of bpf/bench/sieve_bench.bpf.c: programs that do many lookups in each run, and the maps
// where they look.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "libsieve/bench/setup/kernel_bloom.hpp"
#include "libsieve/util/results/result.hpp"

struct sieve_bench_bpf; // the generated skeleton
struct bench_control;

namespace sieve::bench {

// Which addresses are looked up.
enum class Traffic { non_members, members, half };
inline constexpr int traffics = 3;
[[nodiscard]] const char* traffic_name(Traffic traffic);

// Whether one lookup's cache misses may overlap with those of the next, as far as the processor looks ahead.
enum class Spacing { together, apart };
inline constexpr int spacings = 2;
[[nodiscard]] const char* spacing_name(Spacing spacing);

// The sizes of the maps.
struct BenchSizes {
    std::uint64_t keys = 1;
    std::uint64_t lines = 1; // from which the floor draws one at random
    int floor_map = -1;      // the map that holds these lines
    bool only_floor = false; // load the program that reads one line, and no other
    bool peers = true;       // also load the kernel's own sets
    bool verified = false;   // also load the program that verifies what a filter answers
    bool lru = true;
    bool lpm = true;
    std::uint64_t lpm6 = 1;      // prefixes in the trie of IPv6 prefixes
    std::uint64_t questions = 1; // of a prefix workload
    KernelBloom plain, tuned, equal;

    // For runs that ask no peer.
    static BenchSizes without_peers(std::uint64_t lines, int map) {
        BenchSizes sizes;
        sizes.lines = lines;
        sizes.floor_map = map;
        sizes.peers = false;
        return sizes;
    }
};

class BenchObject {
  public:
    static Result<BenchObject> load(const BenchSizes& sizes);

    [[nodiscard]] sieve_bench_bpf& skeleton() const { return *skeleton_; }
    [[nodiscard]] bench_control& control() const;

    // Puts a filter's map into the table of sets.
    [[nodiscard]] Status put_filter(std::uint32_t index, int map) const;
    // Puts the map of the keys behind that filter into the table of exact sets.
    [[nodiscard]] Status put_exact_set(std::uint32_t index, int map) const;

    // Chooses the addresses that the next runs draw.
    void draw(Traffic traffic, std::uint64_t keys) const;

  private:
    struct Destroy {
        void operator()(sieve_bench_bpf* skeleton) const;
    };
    explicit BenchObject(std::unique_ptr<sieve_bench_bpf, Destroy> skeleton)
        : skeleton_(std::move(skeleton)) {}

    std::unique_ptr<sieve_bench_bpf, Destroy> skeleton_;
};

// Runs a program `repeat` times on the frame inside the kernel. Returns nanoseconds per run by the kernel's
// clock. An error if the last run returned something else than `wanted`.
Result<double> run_program(int program, std::span<const std::uint8_t> frame, std::uint32_t repeat,
                           std::optional<std::uint32_t> wanted = std::nullopt);

// The bytes that the kernel says it holds for a map ("memlock" of its fdinfo).
[[nodiscard]] std::uint64_t map_bytes(int fd);

// The memory that the machine has left, in bytes.
[[nodiscard]] std::uint64_t available_memory();

} // namespace sieve::bench
