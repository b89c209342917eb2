// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/line_tasks.hpp"

#include <algorithm>
#include <array>

#include <sieve/blocked.h>

#include "libsieve/util/parallel.hpp"

namespace sieve {

namespace {

// A region has about this many lines, because a task should take longer than starting it does. The maximum
// number of regions depends on the number of choices. 160 regions of 2048 lines make a filter of 10^7 keys at
// 16 bits a key; the line counters of two such regions take 800 KB.
constexpr std::uint32_t lines_of_region = 1024;
constexpr std::array<std::uint32_t, SIEVE_MAX_CHOICES + 1> most_regions = {1, 160, 160, 24};

// Keys are counted and moved in this many portions, one thread for each.
constexpr std::size_t portions = 16;

using Regions = std::array<std::uint32_t, SIEVE_MAX_CHOICES>;

// Numbers a combination of regions, in any order, uniquely: below regions^choices.
std::uint32_t combination(Regions r, std::uint32_t regions, std::uint32_t choices) {
    if (choices == 1) return r[0];
    if (r[0] > r[1]) std::swap(r[0], r[1]);
    if (choices == 2) return r[0] * regions + r[1];
    if (r[1] > r[2]) std::swap(r[1], r[2]);
    if (r[0] > r[1]) std::swap(r[0], r[1]);
    return (r[0] * regions + r[1]) * regions + r[2];
}

} // namespace

LineTasks::LineTasks(std::span<const sieve_hash> keys, const sieve_lookup& lookup) {
    regions_ = std::min((lookup.buckets - 1) / lines_of_region + 1, most_regions[lookup.choices]);
    scale_ = (std::uint64_t{regions_} << scale_bits) / lookup.buckets;
    group(keys, lookup);
}

void LineTasks::group(std::span<const sieve_hash> keys, const sieve_lookup& lookup) {
    const std::uint32_t choices = lookup.choices;
    std::size_t combinations = 1;
    for (std::uint32_t c = 0; c < choices; c++) combinations *= regions_;

    const auto combination_of = [&](const sieve_hash& hash) {
        std::uint32_t line[SIEVE_MAX_CHOICES];
        sieve_blocked_locate(&lookup, hash, line);
        return combination({region(line[0]), region(line[1]), region(line[2])}, regions_, choices);
    };
    const auto portion = [&](std::size_t p) {
        return keys.subspan(keys.size() * p / portions,
                            keys.size() * (p + 1) / portions - keys.size() * p / portions);
    };

    // A counting sort by combination: `place` first holds the counts of each portion, then its positions.
    std::vector<std::vector<std::size_t>> place(portions, std::vector<std::size_t>(combinations));
    for_each_index(portions, [&](std::size_t p) {
        for (const sieve_hash& hash : portion(p)) place[p][combination_of(hash)]++;
    });
    std::vector<std::uint32_t> task_of(combinations, ~0U);
    std::size_t total = 0;
    for (std::size_t c = 0; c < combinations; c++) {
        const std::size_t begin = total;
        for (auto& counts : place) {
            const std::size_t count = counts[c];
            counts[c] = total;
            total += count;
        }
        if (total == begin) continue;
        task_of[c] = static_cast<std::uint32_t>(tasks_.size());
        tasks_.push_back({begin, total});
    }
    keys_ = HugeArray<sieve_hash>(keys.size());
    for_each_index(portions, [&](std::size_t p) {
        for (const sieve_hash& hash : portion(p)) keys_[place[p][combination_of(hash)]++] = hash;
    });
    order(choices, task_of);
}

// With two choices, step s consists of all pairs of regions (i, j) with i + j = s modulo the number of
// regions. Every region is then in exactly one task of each step, so all parts of the filter fill at the same
// pace. The online rule needs this. With three choices, tasks are taken in a random order, and each joins the
// first step that does not use its regions.
void LineTasks::order(std::uint32_t choices, const std::vector<std::uint32_t>& task_of) {
    const std::uint32_t regions = regions_;
    if (choices < 3) {
        steps_.resize(regions);
        for (std::uint32_t c = 0; c < task_of.size(); c++)
            if (task_of[c] != ~0U)
                steps_[choices == 1 ? 0 : (c % regions + c / regions) % regions].push_back(task_of[c]);
        std::erase_if(steps_, [](const auto& step) { return step.empty(); });
        return;
    }
    std::vector<std::uint32_t> combinations;
    for (std::uint32_t c = 0; c < task_of.size(); c++)
        if (task_of[c] != ~0U) combinations.push_back(c);
    std::uint64_t random = 0;
    for (std::size_t i = combinations.size(); i > 1; i--)
        std::swap(combinations[i - 1],
                  combinations[sieve_reduce(static_cast<std::uint32_t>(sieve_mix(++random)),
                                            static_cast<std::uint32_t>(i))]);
    std::vector<std::uint32_t> busy; // by step, a bit for each region
    static_assert(most_regions[3] <= 32);
    for (const std::uint32_t c : combinations) {
        const std::uint32_t needed =
            1U << c % regions | 1U << c / regions % regions | 1U << c / regions / regions;
        std::size_t s = 0;
        while (s < busy.size() && (busy[s] & needed) != 0) s++;
        if (s == busy.size()) {
            busy.push_back(0);
            steps_.emplace_back();
        }
        busy[s] |= needed;
        steps_[s].push_back(task_of[c]);
    }
}

void LineTasks::run(const std::function<void(std::uint32_t)>& work,
                    const std::function<void(std::size_t)>& after_step) const {
    std::size_t done = 0;
    for (const auto& step : steps_) {
        if (step.size() == 1)
            work(step.front());
        else
            for_each_index(step.size(), [&](std::size_t i) { work(step[i]); });
        for (const std::uint32_t task : step) done += tasks_[task].end - tasks_[task].begin;
        if (after_step) after_step(done);
    }
}

} // namespace sieve
