// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The maps of one loaded copy of our program, whoever loaded it. There is no other state.
#pragma once

#include <cstdint>
#include <optional>

#include <sieve/policy.h>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

// The ids of the maps that only few changes need; those open them. 0: the program has no such map (tc's
// programs have none of CPUs).
struct RareMaps {
#define SIEVE_ID_OF(map) std::uint32_t map = 0;
    SIEVE_RARE_MAPS(SIEVE_ID_OF)
#undef SIEVE_ID_OF
};

// The maps' file descriptors, and the control block, mapped. It keeps the maps alive even if the program is
// detached.
class Instance {
  public:
    // Takes ownership of the maps. An error if they do not have this version's shape.
    static Result<Instance> from_maps(UniqueFd control, UniqueFd sets, UniqueFd stats, const RareMaps& rare);

    // The maps of a loaded program; nothing if the program is not ours. An error if it is ours but speaks
    // another version of sieve/policy.h.
    static Result<std::optional<Instance>> from_program(int program_fd);

    Instance(Instance&& other) noexcept;
    Instance& operator=(Instance&& other) noexcept;
    ~Instance();

    [[nodiscard]] volatile sieve_control& control() const { return *control_; }
    [[nodiscard]] int control_fd() const { return control_fd_.get(); }
    [[nodiscard]] int sets_fd() const { return sets_.get(); }
    [[nodiscard]] int stats_fd() const { return stats_.get(); }
    [[nodiscard]] const RareMaps& rare() const { return rare_; }

  private:
    Instance(volatile sieve_control* control, UniqueFd control_fd, UniqueFd sets, UniqueFd stats,
             const RareMaps& rare)
        : control_(control), control_fd_(std::move(control_fd)), sets_(std::move(sets)),
          stats_(std::move(stats)), rare_(rare) {}

    volatile sieve_control* control_ = nullptr;
    UniqueFd control_fd_;
    UniqueFd sets_;
    UniqueFd stats_;
    RareMaps rare_;
};

// A map by its id.
[[nodiscard]] Result<UniqueFd> open_map(std::uint32_t id);

// The id of an open map.
[[nodiscard]] Result<std::uint32_t> map_id(int fd);

} // namespace sieve::kernel
