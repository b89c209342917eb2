// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What it costs to have lists read and filters built by children without privileges: the same refresh, done
// by children and in this process by turns, so that other load meets both.
//
//     sandbox-bench [--rounds N] [ADDRESSES...]     9 rounds of 120000 and 1000000 if none are given
//
// Prints medians, the median of the ratios of neighbours, and how much of a refresh by children is the check
// of what the builder handed over, by kind.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/build/check_built.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/service/sandbox/child_main.hpp"
#include "libsieve/service/sources/sandbox.hpp"
#include "unit/service/in_process.hpp"

namespace {

using namespace sieve;
using namespace sieve::service;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
    fmt::print(stderr, "sandbox-bench: {}\n", what);
    std::exit(1);
}

// Processor time of this process and the children that have ended, in seconds.
double processor_seconds() {
    double sum = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage usage{};
        ::getrusage(who, &usage);
        for (const timeval& time : {usage.ru_utime, usage.ru_stime})
            sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
    return sum;
}

struct Cost {
    double seconds = 0;
    double processor = 0;
    double check = 0; // processor time of asking the image again for each record, once more
};

// A list that is read and built, as one refresh does it.
Cost refresh(const std::string& path, const SandboxSettings& sandbox, sieve_kind kind = SIEVE_KIND_BLOCKED) {
    control::FeedSpec feed;
    feed.build.kind.kind = kind;
    if (kind_of(kind).exact() == nullptr) feed.build.bits_per_key = 16;
    const double processor = processor_seconds();
    const auto begin = Clock::now();
    ReadRequest request{.set = "bench", .origins = {FileOrigin{path}}, .feed = feed, .sandbox = sandbox};
    auto read = read_in_sandbox(request);
    if (!read) fail(read.error().error.message);
    const auto built =
        build_in_sandbox({.set = "bench", .feed = feed, .sandbox = sandbox}, std::get<ReadList>(*read));
    if (!built) fail(built.error().message);
    Cost cost{std::chrono::duration<double>(Clock::now() - begin).count(), processor_seconds() - processor};
    Members members = members_of(*std::get<ReadList>(*read).list);
    const double before = processor_seconds();
    if (const Status same = check_built(built->image, std::move(members), feed.build, {}); !same)
        fail(same.error().message);
    cost.check = processor_seconds() - before;
    return cost;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

std::string list_of(std::size_t addresses) {
    const std::string path = fmt::format("/tmp/sandbox-bench-{}", ::getpid());
    std::ofstream file(path);
    for (std::size_t i = 0; i < addresses; i++) {
        // A permutation of 32 bits, so that no address comes twice.
        const auto address = static_cast<std::uint32_t>(i * 2654435761U);
        file << fmt::format("{}.{}.{}.{}\n", address >> 24, address >> 16 & 255, address >> 8 & 255,
                            address & 255);
    }
    return path;
}

void compare(std::size_t addresses, int rounds) {
    const std::string path = list_of(addresses);
    auto sandboxed = standard_sandbox();
    if (!sandboxed) fail(sandboxed.error().message);
    sandboxed->limits.nice = 0; // both at the priority of this process
    const SandboxSettings direct = test::in_process();
    std::vector<double> seconds[2], processor[2], ratio, processor_ratio;
    for (int round = 0; round <= rounds; round++) {
        // Who begins changes.
        Cost cost[2];
        for (const int which : {round % 2, 1 - round % 2})
            cost[which] = refresh(path, which == 0 ? direct : *sandboxed);
        if (round == 0) continue; // warms up
        for (const int which : {0, 1}) {
            seconds[which].push_back(cost[which].seconds);
            processor[which].push_back(cost[which].processor);
        }
        ratio.push_back(cost[1].seconds / cost[0].seconds);
        processor_ratio.push_back(cost[1].processor / cost[0].processor);
    }
    fmt::print(
        "{:>9} addresses, {} rounds: direct {:.0f} ms ({:.0f} ms CPU), by children {:.0f} ms ({:.0f} ms "
        "CPU); ratio {:.2f} (CPU {:.2f})\n",
        addresses, rounds, 1e3 * median(seconds[0]), 1e3 * median(processor[0]), 1e3 * median(seconds[1]),
        1e3 * median(processor[1]), median(ratio), median(processor_ratio));
    for (const FilterKind* kind : filter_kinds()) {
        std::vector<double> check, share;
        for (int round = 0; round < rounds; round++) {
            const Cost cost = refresh(path, *sandboxed, kind->facts().number);
            check.push_back(cost.check);
            share.push_back(cost.check / cost.processor);
        }
        fmt::print(
            "{:>9} addresses, kind {:<8} the check of the filter is {:.0f} ms CPU, {:.0f}% of the refresh\n",
            addresses, kind->facts().name, 1e3 * median(check), 100 * median(share));
    }
    std::remove(path.c_str());
}

} // namespace

int main(int argc, char** argv) {
    if (const auto done = run_as_child(argc, argv)) return *done;
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // a size takes minutes, also into a pipe
    int rounds = 9;
    std::vector<std::size_t> sizes;
    for (int i = 1; i < argc; i++)
        if (std::string(argv[i]) == "--rounds" && i + 1 < argc)
            rounds = std::max(1, std::atoi(argv[++i]));
        else
            sizes.push_back(std::strtoull(argv[i], nullptr, 10));
    if (sizes.empty()) sizes = {120'000, 1'000'000};
    for (const std::size_t size : sizes) compare(size, rounds);
    return 0;
}
