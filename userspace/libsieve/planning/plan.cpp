// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/planning/plan.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>

#include <fmt/core.h>

#include <sieve/image.h>

#include "libsieve/filters/effort.hpp"
#include "libsieve/filters/kinds/blocked/blocked_plan.hpp"
#include "libsieve/filters/kinds/bloom/bloom_plan.hpp"
#include "libsieve/filters/kinds/dleft/dleft_plan.hpp"

namespace sieve {

namespace {

/// Header and witnesses, as the builder counts them: one witness for a thousand keys, 64 to 1024 of them.
std::uint64_t overhead_lines(std::uint64_t keys) {
    return SIEVE_FIRST_LINE + std::min(keys, std::clamp<std::uint64_t>(keys / 1024, 64, 1024));
}

/// What one kind needs to be planned: everything in units of a kind's own lines (of all its subtables).
struct Kind {
    Candidate candidate; // kind and options filled in
    std::function<Result<std::uint64_t>(double fpr)> lines_for;
    std::function<std::uint64_t(std::uint64_t lines)> fitting; // the most lines that it can use of so many
    std::function<double(std::uint64_t keys, std::uint64_t lines)> predict;
    std::function<void(Candidate&)> finish; // parameters and lines touched, from bits_per_key and fpr
    std::uint64_t sample_keys;              // that predict() builds one filter of
};

double bits_of(std::uint64_t keys, std::uint64_t lines) {
    return static_cast<double>(lines) * SIEVE_LINE_BITS / static_cast<double>(keys);
}

Kind blocked_kind(std::uint64_t keys, std::uint32_t choices) {
    const std::uint32_t rounds = rounds_for(Effort::normal, SIEVE_KIND_BLOCKED, choices);
    const BlockedShape shape{.choices = choices};
    const auto with_hashes = [shape](double bits) {
        BlockedShape used = shape;
        used.hashes = best_hashes(bits, shape);
        return used;
    };
    Kind kind;
    kind.candidate.kind = "blocked";
    kind.candidate.options = fmt::format("--kind blocked --choices {}", choices);
    kind.lines_for = [=](double fpr) { return lines_for_fpr(keys, fpr, shape, rounds); };
    kind.fitting = [](std::uint64_t lines) { return lines; };
    kind.predict = [=](std::uint64_t n, std::uint64_t lines) {
        return predict_fpr(n, lines, with_hashes(bits_of(n, lines)), rounds);
    };
    kind.finish = [=](Candidate& c) {
        c.parameters = fmt::format("{} choice{}, k = {}", choices, choices == 1 ? "" : "s",
                                   with_hashes(c.bits_per_key).hashes);
        c.lines_stranger = c.lines_member = choices;
    };
    kind.sample_keys = 32768;
    return kind;
}

Kind bloom_kind(std::uint64_t keys, std::uint32_t groups) {
    const std::uint32_t rounds = rounds_for(Effort::normal, SIEVE_KIND_BLOOM, groups);
    const BloomGroups shape{.groups = groups};
    const auto with_hashes = [shape](double bits) {
        BloomGroups used = shape;
        used.hashes = best_hashes(bits, shape);
        return used;
    };
    Kind kind;
    kind.candidate.kind = "bloom";
    kind.candidate.options = fmt::format("--kind bloom --choices {}", groups);
    kind.lines_for = [=](double fpr) { return lines_for_fpr(keys, fpr, shape, rounds); };
    kind.fitting = [](std::uint64_t lines) { return lines; };
    kind.predict = [=](std::uint64_t n, std::uint64_t lines) {
        return predict_fpr(n, lines, with_hashes(bits_of(n, lines)), rounds);
    };
    kind.finish = [=](Candidate& c) {
        const std::uint32_t k = with_hashes(c.bits_per_key).hashes;
        c.parameters = fmt::format("{} group{}, k = {}", groups, groups == 1 ? "" : "s", k);
        // A group is asked probe by probe until one finds a zero, 1/(1-p) of them; a member's own group, each
        // as likely as the other, takes all k. From 1 - (1 - p^k)^c = fpr.
        const double one_group = -std::expm1(std::log1p(-std::min(c.fpr, 0.999)) / groups);
        const double ones = std::pow(one_group, 1.0 / k);
        const double in_vain = (1 - one_group) / (1 - ones);
        c.lines_stranger = groups * in_vain;
        c.lines_member = k + (groups - 1) / 2.0 * in_vain;
    };
    kind.sample_keys = 0; // depends on the bits per key, see calibrate()
    return kind;
}

Kind dleft_kind(std::uint64_t keys, const DleftShape& shape) {
    const std::uint32_t rounds = rounds_for(Effort::normal, shape.kind, shape.subtables);
    Kind kind;
    kind.candidate.kind = shape.wide() ? "dleft128" : "dleft64";
    kind.candidate.options = fmt::format("--kind {} --choices {}", kind.candidate.kind, shape.subtables);
    kind.lines_for = [=](double fpr) -> Result<std::uint64_t> {
        SIEVE_ASSIGN(const std::uint64_t lines, dleft_lines_for_fpr(keys, fpr, shape, rounds));
        return lines * shape.subtables;
    };
    kind.fitting = [=](std::uint64_t lines) { return lines - lines % shape.subtables; };
    kind.predict = [=](std::uint64_t n, std::uint64_t lines) {
        return predict_dleft_fpr(n, std::max<std::uint64_t>(1, lines / shape.subtables), shape, rounds);
    };
    kind.finish = [=](Candidate& c) {
        const double load = (shape.wide() ? 128 : 64) / c.bits_per_key;
        c.parameters = fmt::format("{} subtables, load {:.1f}, {} sorted bit{}", shape.subtables, load,
                                   shape.sorting, shape.sorting == 1 ? "" : "s");
        c.lines_stranger = c.lines_member = shape.subtables;
    };
    kind.sample_keys = 32768;
    return kind;
}

Candidate work_out(const Kind& kind, const PlanRequest& request) {
    Candidate c = kind.candidate;
    const std::uint64_t overhead = overhead_lines(request.keys);
    std::uint64_t lines = 0;
    if (request.fpr) {
        const auto enough = kind.lines_for(*request.fpr);
        if (!enough) {
            c.infeasible = enough.error().message;
            return c;
        }
        lines = *enough;
    } else {
        const std::uint64_t total = *request.memory / sizeof(sieve_line);
        lines = total > overhead ? kind.fitting(total - overhead) : 0;
        const auto most = static_cast<std::uint64_t>(static_cast<double>(request.keys) * most_bits_per_key /
                                                     SIEVE_LINE_BITS) +
                          kind.fitting(8);
        lines = std::min(lines, kind.fitting(most));
        if (lines == 0 || bits_of(request.keys, lines) < least_bits_per_key) {
            c.infeasible = fmt::format("{} bytes are less than 1 bit per key", *request.memory);
            return c;
        }
    }
    c.bytes = (lines + overhead) * sizeof(sieve_line);
    c.bits_per_key = bits_of(request.keys, lines);
    c.fpr = kind.predict(request.keys, lines);
    if (c.fpr >= 1) {
        c.infeasible = "too small for this kind: every packet would match";
        return c;
    }
    kind.finish(c);
    return c;
}

/// Builds a small filter of the candidate's shape and takes the time.
double calibrate(const Kind& kind, const Candidate& c) {
    // A thousand lines, so that the build of a large set, which waits for memory, is not flattered too much.
    const std::uint64_t lines =
        kind.sample_keys == 0
            ? 1024
            : kind.fitting(static_cast<std::uint64_t>(std::ceil(static_cast<double>(kind.sample_keys) *
                                                                c.bits_per_key / SIEVE_LINE_BITS)) +
                           3);
    const auto keys =
        kind.sample_keys == 0
            ? static_cast<std::uint64_t>(static_cast<double>(lines) * SIEVE_LINE_BITS / c.bits_per_key)
            : kind.sample_keys;
    // Processor time: what else the machine does must not count.
    const std::clock_t start = std::clock();
    kind.predict(keys, lines);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    return seconds * 1e9 / static_cast<double>(keys);
}

Status check(const PlanRequest& request) {
    if (request.keys == 0) return usage_error("a plan for no keys, expected at least one");
    if (request.fpr.has_value() == request.memory.has_value())
        return usage_error("give either a false positive rate or a memory");
    if (request.fpr && !(*request.fpr >= least_fpr && *request.fpr < 1))
        return usage_error(fmt::format("a false positive rate of {}, expected one from {} to below 1",
                                       *request.fpr, least_fpr));
    return {};
}

} // namespace

void recommend(Plan& plan, const PlanRequest& request) {
    const bool for_rate = request.fpr.has_value();
    const auto lines = [](const Candidate& c) { return std::max(c.lines_stranger, c.lines_member); };
    // What is to be small: the memory for a rate, the rate for a memory.
    const auto cost = [for_rate](const Candidate& c) {
        return for_rate ? static_cast<double>(c.bytes) : c.fpr;
    };
    const auto best_within = [&](double most_lines) -> const Candidate* {
        const Candidate* best = nullptr;
        for (const auto& c : plan.candidates) {
            if (!c.infeasible.empty() || lines(c) > most_lines ||
                std::find(request.recommendable.begin(), request.recommendable.end(), c.kind) ==
                    request.recommendable.end())
                continue;
            if (best == nullptr || cost(c) < cost(*best)) best = &c;
        }
        return best;
    };
    plan.recommended.reset();
    const char* what = for_rate ? "the smallest" : "the most accurate";
    const Candidate* one = best_within(1);
    const Candidate* chosen = best_within(most_lines_recommended);
    if (chosen != nullptr && one != nullptr && one != chosen &&
        cost(*one) <= worth_of_one_line * cost(*chosen)) {
        plan.reason = fmt::format("one cache line a packet, and within {:.0f} % of {} with two",
                                  100 * (worth_of_one_line - 1), what);
        chosen = one;
    } else if (chosen != nullptr) {
        plan.reason =
            fmt::format("{} of the kinds that can be built and touch at most {:.0f} cache lines a packet",
                        what, most_lines_recommended);
    } else {
        for (const auto& c : plan.candidates)
            if (best_within(lines(c)) == &c && (chosen == nullptr || lines(c) < lines(*chosen))) chosen = &c;
        plan.reason = chosen != nullptr ? "the only way with so few cache lines a packet"
                                        : "no kind of filter can do it";
    }
    if (chosen != nullptr) plan.recommended = static_cast<std::size_t>(chosen - plan.candidates.data());
}

Result<Plan> make_plan(const PlanRequest& request, const Progress& progress) {
    SIEVE_TRY(check(request));
    std::vector<Kind> kinds;
    for (const std::uint32_t choices : {1U, 2U, 3U}) kinds.push_back(blocked_kind(request.keys, choices));
    for (const std::uint32_t groups : {1U, 2U, 3U}) kinds.push_back(bloom_kind(request.keys, groups));
    kinds.push_back(dleft_kind(request.keys,
                               {.kind = SIEVE_KIND_DLEFT64, .subtables = 2, .sorting = 1, .grouped = false}));
    kinds.push_back(dleft_kind(
        request.keys, {.kind = SIEVE_KIND_DLEFT128, .subtables = 2, .sorting = 2, .grouped = false}));

    Plan plan;
    plan.candidates.resize(kinds.size());
    std::atomic<std::size_t> next = 0;
    std::mutex mutex; // guards done and progress
    std::size_t done = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < kinds.size(); i = next++) {
            plan.candidates[i] = work_out(kinds[i], request);
            const std::scoped_lock lock(mutex);
            ++done;
            if (progress) progress("planning", static_cast<double>(done) / static_cast<double>(kinds.size()));
        }
    };
    {
        std::vector<std::jthread> pool;
        for (unsigned t = 1; t < std::min<std::size_t>(std::thread::hardware_concurrency(), kinds.size());
             ++t)
            pool.emplace_back(work);
        work();
    }
    // One after the other, so that they do not take each other's time.
    if (request.calibrate)
        for (std::size_t i = 0; i < kinds.size(); ++i)
            if (plan.candidates[i].infeasible.empty())
                plan.candidates[i].build_ns = calibrate(kinds[i], plan.candidates[i]);
    recommend(plan, request);
    return plan;
}

} // namespace sieve
