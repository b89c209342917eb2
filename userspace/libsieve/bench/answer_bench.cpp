// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/answer_bench.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include <bpf/libbpf.h>
#include <sieve/policy.h>

#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/util/parallel/parallel.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

// Between two reports of progress.
constexpr std::uint64_t portion = 1U << 24;

std::uint64_t ask_image(const Image& image, std::uint64_t members, std::uint64_t first, std::uint64_t last) {
    std::uint64_t wrong = 0;
    sieve_key key{};
    for (std::uint64_t position = first; position < last; position++) {
        key.word[1] = sieve_v4_mapped(bench_address(static_cast<std::uint32_t>(position)));
        wrong += image.contains(key) != (position < members) ? 1 : 0;
    }
    return wrong;
}

std::uint64_t ask_in_user_space(const Image& image, std::uint64_t members, std::uint64_t first,
                                std::uint64_t last) {
    constexpr std::uint64_t piece = 1U << 16; // for one thread
    std::atomic<std::uint64_t> wrong = 0;
    for_each_index((last - first + piece - 1) / piece, [&](std::size_t i) {
        const std::uint64_t from = first + i * piece;
        wrong += ask_image(image, members, from, std::min(last, from + piece));
    });
    return wrong.load();
}

// Of the filter that the object's control block names.
Result<std::uint64_t> ask_in_kernel(const BenchObject& object, std::uint64_t first, std::uint64_t last) {
    const int program = bpf_program__fd(object.skeleton().progs.bench_wrong);
    bench_control& control = object.control();
    const std::array<std::uint8_t, 64> frame{};
    control.state = first;
    control.found = 0;
    while (control.state < last) {
        const std::uint64_t left = last - control.state;
        const std::uint32_t all = control.lookups;
        control.lookups = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, all));
        const Result<double> ran =
            run_program(program, frame, static_cast<std::uint32_t>(std::max<std::uint64_t>(1, left / all)));
        control.lookups = all;
        if (!ran) return tl::unexpected(ran.error());
    }
    return control.found;
}

// Asks for portions of the addresses by ask(first, last), which returns the number of wrong answers.
template <class Ask>
Result<AnswerRow> ask_all(AnswerRow row, std::uint64_t addresses, const Progress& progress, const Ask& ask) {
    const auto start = std::chrono::steady_clock::now();
    while (row.asked < addresses) {
        const std::uint64_t last = std::min(row.asked + portion, addresses);
        SIEVE_ASSIGN(const std::uint64_t wrong, ask(row.asked, last));
        row.wrong += wrong;
        row.asked = last;
        progress(row.kind, static_cast<double>(last) / static_cast<double>(addresses));
    }
    row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return row;
}

Status ask_kind(const FilterKind& kind, const BenchObject& object, const AnswerOptions& options,
                const Progress& progress, std::vector<AnswerRow>& rows) {
    const std::string name(kind.facts().name);
    BuildOptions build;
    build.kind.kind = kind.facts().number;
    SIEVE_ASSIGN(const BuiltSet built, build_set(member_keys(options.keys), build, progress));
    const auto in_user_space = [&](std::uint64_t first, std::uint64_t last) -> Result<std::uint64_t> {
        return ask_in_user_space(built.image, options.keys, first, last);
    };
    SIEVE_ASSIGN(AnswerRow user, ask_all({.kind = name}, options.addresses, progress, in_user_space));
    rows.push_back(std::move(user));

    SIEVE_ASSIGN(const kernel::FilterMap map, kernel::FilterMap::create(built.image, "bench"));
    constexpr std::uint32_t index = 0;
    SIEVE_TRY(object.put_filter(index, map.fd()));
    object.control().index = index;
    object.control().members = options.keys;
    const auto in_kernel = [&](std::uint64_t first, std::uint64_t last) {
        return ask_in_kernel(object, first, last);
    };
    SIEVE_ASSIGN(AnswerRow kernel,
                 ask_all({.kind = name, .kernel = true}, options.addresses, progress, in_kernel));
    rows.push_back(std::move(kernel));
    return {};
}

} // namespace

Result<AnswerTable> bench_answers(const AnswerOptions& options, const Progress& progress) {
    SIEVE_ASSIGN(const BenchObject object, BenchObject::load(BenchSizes::without_peers(1, -1)));
    AnswerTable table{.keys = options.keys, .rows = {}};
    for (const FilterKind* kind : filter_kinds())
        if (kind->exact() != nullptr && kind->exact()->is_of_keys())
            SIEVE_TRY(ask_kind(*kind, object, options, progress, table.rows));
    return table;
}

} // namespace sieve::bench
