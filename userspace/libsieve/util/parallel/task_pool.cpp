// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/parallel/task_pool.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

namespace sieve::task_pool {

namespace tbb = oneapi::tbb;

// oneTBB registers the address of the control, so it is made in place and never copied.
struct Limit {
    explicit Limit(std::size_t threads) : control(tbb::global_control::max_allowed_parallelism, threads) {}
    tbb::global_control control;
};

void EndLimit::operator()(Limit* limit) const {
    std::default_delete<Limit>()(limit);
}

std::unique_ptr<Limit, EndLimit> limit_threads(std::size_t threads) {
    auto limit = std::make_unique<Limit>(
        threads != 0 ? threads : static_cast<std::size_t>(tbb::info::default_concurrency()));
    return std::unique_ptr<Limit, EndLimit>(limit.release());
}

void for_each(std::size_t count, void (*task)(void* context, std::size_t index), void* context) {
    tbb::parallel_for(std::size_t{0}, count, [=](std::size_t index) { task(context, index); });
}

void run(std::size_t threads, std::size_t slots, const Pipeline& pipeline, void* context) {
    const auto first = [&](tbb::flow_control& control) {
        std::size_t slot = 0;
        if (!pipeline.first(context, slot)) control.stop();
        return slot;
    };
    const auto middle = [&](std::size_t slot) {
        pipeline.middle(context, slot);
        return slot;
    };
    const auto last = [&](std::size_t slot) { pipeline.last(context, slot); };
    tbb::task_arena arena(static_cast<int>(threads));
    arena.execute([&] {
        tbb::parallel_pipeline(
            slots, tbb::make_filter<void, std::size_t>(tbb::filter_mode::serial_in_order, first) &
                       tbb::make_filter<std::size_t, std::size_t>(tbb::filter_mode::parallel, middle) &
                       tbb::make_filter<std::size_t, void>(tbb::filter_mode::serial_in_order, last));
    });
}

} // namespace sieve::task_pool
