// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/programs/skeleton.hpp"

#include "xdp_sieve.skel.h"
#include "xdp_sieve_tc.skel.h"

namespace sieve::kernel {

namespace {

template <class Generated>
class SkeletonOf final : public Skeleton {
  public:
    explicit SkeletonOf(Generated* generated) : generated_(generated) {}

    [[nodiscard]] bpf_object* object() const override { return generated_->obj; }

    void set_tracing(bool tracing) override {
        // The variable is read-only for the program. Before loading, user space may set it.
        const_cast<std::uint32_t&>(
            static_cast<const volatile std::uint32_t&>(generated_->rodata->sieve_tracing)) = tracing ? 1 : 0;
    }

    [[nodiscard]] int load() override { return Generated::load(generated_.get()); }

    [[nodiscard]] const volatile sieve_trace& trace() const override {
        return generated_->bss->sieve_trace_last;
    }

  private:
    struct Destroy {
        void operator()(Generated* generated) const { Generated::destroy(generated); }
    };
    std::unique_ptr<Generated, Destroy> generated_;
};

template <class Generated>
std::unique_ptr<Skeleton> open() {
    Generated* generated = Generated::open();
    return generated == nullptr ? nullptr : std::make_unique<SkeletonOf<Generated>>(generated);
}

} // namespace

const char* program_name(HookPoint point) {
    switch (point) {
    case HookPoint::xdp:
        return SIEVE_PROGRAM;
    case HookPoint::ingress:
        return SIEVE_PROGRAM_INGRESS;
    case HookPoint::egress:
        return SIEVE_PROGRAM_EGRESS;
    }
    return nullptr;
}

std::unique_ptr<Skeleton> open_skeleton(HookPoint point, bool frags) {
    const bool xdp = point == HookPoint::xdp;
    std::unique_ptr<Skeleton> skeleton = xdp ? open<xdp_sieve_bpf>() : open<xdp_sieve_tc_bpf>();
    if (!skeleton) return nullptr;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, skeleton->object()) {
        bpf_program__set_autoload(program, false);
        // libbpf 1.1 does not know the section names tc/ingress and tc/egress.
        if (!xdp) bpf_program__set_type(program, BPF_PROG_TYPE_SCHED_CLS);
    }
    bpf_program__set_autoload(skeleton->program(program_name(point)), true);
    if (xdp) bpf_program__set_autoload(skeleton->program(SIEVE_PROGRAM_FRAGS), frags);
    // tc cannot redirect to a CPU.
    if (!xdp) bpf_map__set_autocreate(skeleton->map(SIEVE_MAP_NAME(cpus)), false);
    return skeleton;
}

} // namespace sieve::kernel
