// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/api/handles.hpp"

bool libsieve_plan_new(uint64_t keys, double fpr, uint64_t memory, libsieve_plan** plan,
                       libsieve_error** error) {
    return sieve::api::guarded(error, {{"plan", plan}}, [&]() -> sieve::Status {
        sieve::PlanRequest request{.keys = keys, .calibrate = false};
        if (fpr != 0) request.fpr = fpr;
        if (memory != 0) request.memory = memory;
        SIEVE_ASSIGN(sieve::Plan made, sieve::make_plan(request, {}));
        *plan = std::make_unique<libsieve_plan>(libsieve_plan{std::move(made)}).release();
        return {};
    });
}

size_t libsieve_plan_count(const libsieve_plan* plan) {
    return plan != nullptr ? plan->plan.candidates.size() : 0;
}

bool libsieve_plan_candidate(const libsieve_plan* plan, size_t index, libsieve_candidate* candidate) {
    if (plan == nullptr || candidate == nullptr || index >= plan->plan.candidates.size()) return false;
    const sieve::Candidate& from = plan->plan.candidates[index];
    libsieve_candidate all{};
    all.kind = from.kind.c_str();
    all.parameters = from.parameters.c_str();
    all.infeasible = from.infeasible.empty() ? nullptr : from.infeasible.c_str();
    all.recommended = plan->plan.recommended == index;
    all.bytes = from.bytes;
    all.bits_per_key = from.bits_per_key;
    all.predicted_fpr = from.fpr;
    all.lines_miss = from.lines_non_member;
    all.lines_hit = from.lines_member;
    sieve::api::fill(candidate, all);
    return true;
}

void libsieve_plan_free(libsieve_plan* plan) {
    std::unique_ptr<libsieve_plan>{plan}.reset();
}
