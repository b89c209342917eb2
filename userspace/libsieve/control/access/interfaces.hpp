// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The host's network interfaces as control sees them.
#pragma once

#include <string>
#include <vector>

#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/host/device.hpp"
#include "libsieve/kernel/maps/redirect_maps.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

class Interfaces {
  public:
    virtual ~Interfaces() = default;

    [[nodiscard]] virtual Result<kernel::Interface> find_interface(const std::string& name) = 0;
    [[nodiscard]] virtual std::vector<kernel::Interface> interfaces() = 0; // of this network namespace
    [[nodiscard]] virtual int mtu(const kernel::Interface& interface) = 0; // 0: unknown
    [[nodiscard]] virtual Result<kernel::Device> read_device(const kernel::Interface& interface) = 0;
    [[nodiscard]] virtual Result<kernel::Target> find_target(const std::string& name) = 0;
};

} // namespace sieve::control
