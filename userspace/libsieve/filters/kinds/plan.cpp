// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/plan.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/choice.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/placement/sample_hashes.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {

namespace {

/// One form of one kind, for comparison.
struct Form {
    const FilterKind* kind;
    KindOptions options;
    std::unique_ptr<KindBuilder> builder; ///< null for an exact kind
};

/// The forms of these kinds, as `build` makes them with these options alone.
Result<std::vector<Form>> all_forms(const Kinds& kinds) {
    std::vector<Form> forms;
    for (const FilterKind* kind : kinds.all())
        for (const KindOptions& options : kind->forms()) {
            std::unique_ptr<KindBuilder> builder;
            if (kind->exact() == nullptr) {
                SIEVE_ASSIGN(builder, kinds.builder(options));
            }
            forms.push_back({kind, options, std::move(builder)});
        }
    return forms;
}

/// As the builder: the header counts lines in 32 bits. `lines` are those of a whole image.
Status check_lines(std::uint64_t lines) {
    if (lines > std::numeric_limits<std::uint32_t>::max())
        return invalid_request(fmt::format("{} lines of 64 bytes are more than a BPF map can hold", lines));
    return {};
}

/// The number of lines that the request needs. Error: why the form cannot meet the request.
Result<std::uint64_t> choose_lines(const Form& form, const PlanRequest& request, std::uint64_t overhead) {
    const KindBuilder& builder = *form.builder;
    if (request.fpr) return builder.lines_for_fpr(request.keys, *request.fpr);
    if (!request.memory) return builder.lines_for_bits(request.keys, form.kind->facts().bits_per_key);
    const std::uint64_t total = *request.memory / sizeof(sieve_line);
    const std::uint64_t most = builder.lines_for_bits(request.keys, most_bits_per_key);
    const std::uint64_t lines = total > overhead ? std::min(builder.usable_lines(total - overhead), most) : 0;
    if (lines == 0 || bits_per_key_of(request.keys, lines) < least_bits_per_key)
        return invalid_request(fmt::format("{} bytes are less than 1 bit per key", *request.memory));
    return lines;
}

/// Whether the keys are known to be no single addresses.
bool are_wide(const PlanRequest& request) {
    return request.fields != 0 && sieve_is_one_address(request.fields) == 0;
}

/// A key of TCP whose fields follow from the number, each of them different for each of 2^16 numbers.
sieve_key sample_key(std::uint32_t number) {
    const auto scattered = [number](std::uint32_t multiplier) { return number * multiplier + multiplier; };
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(scattered(0x9e3779b1U));
    key.word[3] = sieve_v4_mapped(scattered(0x85ebca77U));
    constexpr std::uint8_t tcp = 6;
    key.word[4] = sieve_transport_word(static_cast<std::uint16_t>(number),
                                       static_cast<std::uint16_t>(scattered(0x2f35U)), tcp);
    return key;
}

/// What an exact kind takes for random IPv4 addresses, or for keys of several fields.
struct ExactSample {
    std::uint64_t lines = 0; ///< for all keys
    sieve_lookup lookup{};   ///< of a sample
    double seconds = 0;      ///< to build the sample, of which so many addresses are
    std::uint64_t count = 0;
};

Result<ExactSample> sample_exact(const ExactKind& kind, const PlanRequest& request) {
    const std::uint64_t keys = request.keys;
    const bool wide = are_wide(request);
    if (wide && !kind.is_of_keys()) return invalid_request("addresses and prefixes only, src or dst");
    constexpr std::uint64_t most_in_sample = 1U << 16;
    ExactSample sample{.count = std::min(keys, most_in_sample)};
    std::mt19937_64 random(sample.count);
    KeySet singles(wide ? request.fields : std::uint32_t{SIEVE_FIELD_SRC});
    std::vector<AddressRange> ranges;
    for (std::uint64_t i = 0; i < sample.count; i++) {
        if (wide) {
            singles.add(sample_key(static_cast<std::uint32_t>(i)));
            continue;
        }
        const auto address = static_cast<std::uint32_t>(random());
        if (kind.is_of_keys())
            singles.add_ipv4(address);
        else
            ranges.push_back({sieve_v4_mapped(address), sieve_v4_mapped(address)});
    }
    constexpr std::array<__u64, SIEVE_HASH_KEY_WORDS> secret{};
    const std::clock_t start = std::clock();
    SIEVE_ASSIGN(const std::unique_ptr<ExactFilter> filter,
                 kind.is_of_keys() ? kind.work_out(singles, {}, secret)
                                   : kind.work_out(address_set_of(std::move(ranges))));
    std::vector<sieve_line> lines(filter->lines());
    filter->fill(lines);
    sample.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    SIEVE_TRY(filter->describe(sample.lookup));
    // Ranges and records take room in proportion to their number.
    const double scale = static_cast<double>(keys) / static_cast<double>(sample.count);
    sample.lines =
        kind.is_of_keys() && !wide
            ? kind.lines_for(keys, 0)
            : static_cast<std::uint64_t>(std::llround(scale * static_cast<double>(filter->lines())));
    return sample;
}

/// The filter of an exact kind for random IPv4 addresses, or for keys of the given fields. Prefixes and
/// crowded addresses take less in a kind of ranges.
Candidate work_out_exact(const ExactKind& kind, const PlanRequest& request) {
    Candidate c;
    c.kind = kind.facts().name;
    c.options = fmt::format("--kind {}", c.kind);
    c.exact = true;
    const Result<ExactSample> sample = sample_exact(kind, request);
    if (!sample) {
        c.infeasible = sample.error().message;
        return c;
    }
    c.lookup = sample->lookup;
    const std::uint64_t all_lines = sample->lines + SIEVE_FIRST_LINE + witness_count(request.keys);
    c.bytes = all_lines * sizeof(sieve_line);
    if (request.memory && c.bytes > *request.memory) {
        c.infeasible = fmt::format("exact, and takes {} bytes{}", c.bytes,
                                   are_wide(request) ? "" : " if the keys are random IPv4 addresses");
        return c;
    }
    if (const Status possible = check_lines(all_lines); !possible) {
        c.infeasible = possible.error().message;
        return c;
    }
    c.bits_per_key = bits_per_key_of(request.keys, sample->lines);
    c.parameters = kind.parameters(c.lookup, request.keys);
    const LinesTouched touched = kind.lines_touched(c.lookup, 0);
    c.lines_non_member = touched.non_member;
    c.lines_member = touched.member;
    if (request.calibrate) c.build_ns = sample->seconds * 1e9 / static_cast<double>(sample->count);
    return c;
}

Candidate work_out(const Form& form, const PlanRequest& request) {
    const FilterKind& kind = *form.kind;
    if (const ExactKind* exact = kind.exact()) return work_out_exact(*exact, request);
    Candidate c;
    c.kind = kind.facts().name;
    c.options = fmt::format("--kind {} --choices {}", c.kind, kind.choices_of(form.options));
    const std::uint64_t overhead = SIEVE_FIRST_LINE + witness_count(request.keys);
    const Result<std::uint64_t> lines = choose_lines(form, request, overhead);
    if (!lines) {
        c.infeasible = lines.error().message;
        return c;
    }
    if (const Status possible = check_lines(*lines + overhead); !possible) {
        c.infeasible = possible.error().message;
        return c;
    }
    if (const Status described = form.builder->describe(request.keys, *lines, c.lookup); !described) {
        c.infeasible = described.error().message;
        return c;
    }
    c.bytes = (*lines + overhead) * sizeof(sieve_line);
    c.bits_per_key = bits_per_key_of(request.keys, *lines);
    c.fpr = form.builder->predict_fpr(request.keys, c.lookup);
    if (c.fpr >= 1) {
        c.infeasible = "too small for this kind: every packet would match";
        return c;
    }
    c.parameters = kind.parameters(c.lookup, request.keys);
    const LinesTouched touched = kind.lines_touched(c.lookup, c.fpr);
    c.lines_non_member = touched.non_member;
    c.lines_member = touched.member;
    return c;
}

/// Builds a small filter of the candidate's form and measures the time. Returns nanoseconds a key; 0 if the
/// form cannot be built that small.
double calibrate(const Form& form, const Candidate& c) {
    // About a thousand lines: a much smaller filter would stay in the cache and look too fast beside a large
    // set, whose build waits for memory.
    constexpr std::uint64_t sample_keys = 32768;
    const std::uint64_t lines = form.builder->lines_for_bits(sample_keys, c.bits_per_key);
    sieve_lookup lookup{};
    if (!form.builder->describe(sample_keys, lines, lookup)) return 0;
    std::mt19937_64 random(sample_keys);
    const std::vector<sieve_hash> hashes = sample_hashes(sample_keys, random);
    std::vector<sieve_line> filter(lines);
    // Processor time, so that other load on the machine does not count.
    const std::clock_t start = std::clock();
    if (!form.builder->fill(hashes, lookup, filter, 0, {})) return 0;
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    return seconds * 1e9 / static_cast<double>(sample_keys);
}

Status check(const PlanRequest& request) {
    if (request.keys == 0) return invalid_request("a plan for no keys, expected at least one");
    if (request.keys > most_planned_keys)
        return invalid_request(
            fmt::format("a plan for {} keys, expected at most {}", request.keys, most_planned_keys));
    if (request.fpr && request.memory)
        return invalid_request("give either a false positive rate or a memory, or neither");
    if (request.fpr && !(*request.fpr >= least_fpr && *request.fpr < 1))
        return invalid_request(fmt::format("a false positive rate of {}, expected one from {} to below 1",
                                           *request.fpr, least_fpr));
    return {};
}

} // namespace

namespace {

/// A candidate, and why it is the one.
struct Recommended {
    std::optional<std::size_t> index{};
    std::string reason{};
};

Recommended recommend_filter(const Plan& plan, const PlanRequest& request) {
    const bool for_rate = request.fpr.has_value();
    const auto lines = [](const Candidate& c) { return std::max(c.lines_non_member, c.lines_member); };
    // The cost to minimise: the memory if a rate was given, else the rate.
    const auto cost = [for_rate](const Candidate& c) {
        return for_rate ? static_cast<double>(c.bytes) : c.fpr;
    };
    const auto best_within = [&](double most_lines) -> const Candidate* {
        const Candidate* best = nullptr;
        for (const auto& c : plan.candidates) {
            if (!c.infeasible.empty() || c.exact || lines(c) > most_lines) continue;
            if (best == nullptr || cost(c) < cost(*best)) best = &c;
        }
        return best;
    };
    Recommended recommended;
    const char* what = for_rate ? "the smallest" : "the most accurate";
    const Candidate* one = best_within(1);
    const Candidate* chosen = best_within(most_lines_recommended);
    if (chosen != nullptr && one != nullptr && one != chosen &&
        cost(*one) <= worth_of_one_line * cost(*chosen)) {
        recommended.reason = fmt::format("one cache line a packet, and within {:.0f} % of {} with two",
                                         100 * (worth_of_one_line - 1), what);
        chosen = one;
    } else if (chosen != nullptr) {
        recommended.reason =
            fmt::format("{} of the kinds that can be built and touch at most {:.0f} cache lines a packet",
                        what, most_lines_recommended);
    } else {
        for (const auto& c : plan.candidates)
            if (!c.exact && best_within(lines(c)) == &c && (chosen == nullptr || lines(c) < lines(*chosen)))
                chosen = &c;
        recommended.reason = chosen != nullptr ? "the only way with so few cache lines a packet"
                                               : "no kind of filter can do it";
    }
    if (chosen != nullptr) recommended.index = static_cast<std::size_t>(chosen - plan.candidates.data());
    return recommended;
}

} // namespace

void recommend(Plan& plan, const PlanRequest& request) {
    Recommended filter = recommend_filter(plan, request);
    plan.recommended = filter.index;
    plan.reason = std::move(filter.reason);
    plan.for_other_keys.reset();
    plan.reason_for_other_keys.clear();
    const auto exact = std::ranges::find(plan.candidates, kind_name(SIEVE_KIND_EXACT), &Candidate::kind);
    if (are_wide(request) || request.fpr || request.memory || exact == plan.candidates.end() ||
        !exact->infeasible.empty())
        return;
    const auto mebibytes = [](std::uint64_t bytes) {
        return (bytes >> 20) + (bytes % (1 << 20) != 0 ? 1 : 0);
    };
    if (const std::uint64_t bytes = bytes_of_exact(request.keys, 0); bytes > most_bytes_of_exact) {
        plan.reason +=
            fmt::format("; kind {} would take {} MiB, and is the default for single addresses up to {}",
                        exact->kind, mebibytes(bytes), mebibytes(most_bytes_of_exact));
        return;
    }
    const auto other = std::exchange(plan.recommended, exact - plan.candidates.begin());
    std::string reason =
        std::exchange(plan.reason, fmt::format("without false positives, and takes at most {} MiB",
                                               mebibytes(most_bytes_of_exact)));
    if (request.fields != 0) return;
    plan.for_other_keys = other;
    plan.reason_for_other_keys = std::move(reason);
}

Result<Plan> make_plan(const PlanRequest& request, const Progress& progress) {
    SIEVE_TRY(check(request));
    SIEVE_ASSIGN(const std::vector<Form> forms, all_forms(*request.kinds));
    Plan plan;
    plan.candidates.resize(forms.size());
    std::mutex mutex; // guards done and progress
    std::size_t done = 0;
    for_each_index(forms.size(), [&](std::size_t i) {
        plan.candidates[i] = work_out(forms[i], request);
        const std::scoped_lock lock(mutex);
        ++done;
        if (progress) progress("planning", static_cast<double>(done) / static_cast<double>(forms.size()));
    });
    // One build after another, so that builds do not compete for the processor.
    if (request.calibrate)
        for (std::size_t i = 0; i < forms.size(); ++i)
            if (plan.candidates[i].infeasible.empty() && !plan.candidates[i].exact)
                plan.candidates[i].build_ns = calibrate(forms[i], plan.candidates[i]);
    recommend(plan, request);
    return plan;
}

} // namespace sieve
