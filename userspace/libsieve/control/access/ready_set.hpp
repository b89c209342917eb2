// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A set whose filter is in the kernel but not in force.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/programs/preflight.hpp"
#include "libsieve/keys/key_set.hpp"

namespace sieve::control {

// A filter's map in the kernel, and the map of the keys that verify it.
struct SetMaps {
    int filter_fd = -1;
    std::uint32_t filter_id = 0;
    int exact_fd = -1; // -1: matches are not verified
    std::uint64_t exact_bytes = 0;
    std::shared_ptr<const void> owner{}; // keeps the descriptors open

    [[nodiscard]] bool verified() const { return exact_fd >= 0; }
};

struct ReadySet {
    std::string name{};
    Image image;
    SetMaps maps;
    kernel::PreflightReport preflight{}; // filled once the set was tested
    std::optional<KeySet> keys{}; // if SetSpec::keep_keys asked for them and its source lists single keys
};

} // namespace sieve::control
