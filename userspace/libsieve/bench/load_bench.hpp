// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How long until a list is in force, by the commands that people type, and what it takes up then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libsieve/bench/summary.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::bench {

struct LoadOptions {
    std::filesystem::path program; // this one: its `load` is measured as a process of its own
    std::uint32_t rounds = 5;
    std::uint64_t most_list_keys = 1'000'000; // for ipset and nftables, which take their time
};

struct LoadRow {
    std::string name;
    Rounds seconds;
    std::uint64_t bytes = 0; // in the kernel
    std::string bytes_by;    // who says so
};

struct LoadTable {
    std::uint64_t keys = 0;
    std::vector<LoadRow> rows;
    std::vector<std::string> skipped;
};

// `image` is the set of member_keys() of its size. The commands run in a network namespace of their own.
Result<LoadTable> bench_loading(Image& image, const LoadOptions& options, const Progress& progress);

} // namespace sieve::bench
