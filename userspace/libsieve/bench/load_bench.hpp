// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How long it takes until a list is in force, with the commands that people type, and how much memory it then
// takes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libsieve/bench/setup/summary.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct LoadOptions {
    std::filesystem::path program; // this program; its `load` is measured as a separate process
    std::uint32_t rounds = 5;
    std::uint64_t most_list_keys = 1'000'000; // for ipset and nftables, which are slow
};

struct LoadRow {
    std::string name;
    Rounds seconds;
    std::uint64_t bytes = 0; // in the kernel
    std::string bytes_by;    // where `bytes` comes from
};

struct LoadTable {
    std::uint64_t keys = 0;
    std::vector<LoadRow> rows;
    std::vector<std::string> skipped;
};

// `image` is the set of the member_keys() of its size. The commands run in their own network namespace.
Result<LoadTable> bench_loading(Image& image, const LoadOptions& options, const Progress& progress);

} // namespace sieve::bench
