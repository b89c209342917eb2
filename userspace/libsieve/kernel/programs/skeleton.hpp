// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The BPF objects that are built into this program, one for each kind of hook, behind one face.
#pragma once

#include <memory>
#include <string>

#include <bpf/libbpf.h>
#include <sieve/policy.h>

#include "libsieve/kernel/programs/hook_point.hpp"

namespace sieve::kernel {

class Skeleton {
  public:
    Skeleton() = default;
    Skeleton(const Skeleton&) = delete;
    Skeleton& operator=(const Skeleton&) = delete;
    virtual ~Skeleton() = default;

    [[nodiscard]] virtual bpf_object* object() const = 0;

    // Before loading: whether programs leave what they saw of each packet in trace().
    virtual void set_tracing(bool tracing) = 0;

    // 0 or a negative errno value.
    [[nodiscard]] virtual int load() = 0;

    [[nodiscard]] virtual const volatile sieve_trace& trace() const = 0;

    // The map of that name (sieve/policy.h), which every object has; and the program, or nothing.
    [[nodiscard]] bpf_map* map(const char* name) const {
        return bpf_object__find_map_by_name(object(), name);
    }
    [[nodiscard]] bpf_program* program(const char* name) const {
        return bpf_object__find_program_by_name(object(), name);
    }
};

// The hook's program, by its name in sieve/policy.h.
[[nodiscard]] const char* program_name(HookPoint point);

// The object with that hook's program: opened, not loaded. Loads that program and, if `frags`, XDP's for
// multi-buffer frames. Nothing on an error, which is in errno.
[[nodiscard]] std::unique_ptr<Skeleton> open_skeleton(HookPoint point, bool frags);

} // namespace sieve::kernel
