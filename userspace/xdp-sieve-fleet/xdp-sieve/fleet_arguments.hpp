// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What `publish` and `fleet` share: which fleet, and by which configuration and key.
#pragma once

#include <cstdint>
#include <string>

#include "front-end/console/arguments.hpp"
#include "libsieve/fleet/manifest/fleet_access.hpp"
#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/util/results/result.hpp"
#include "xdp-sieve/arguments/context.hpp"

namespace sieve::cli {

class FleetArguments {
  public:
    // Adds --fleet, --config and --key. This object must outlive the parsing.
    void add_to(Arguments& command);

    // How to reach the fleet. invalid_request unless the configuration is one of the fleet that was named.
    [[nodiscard]] Result<fleet::FleetAccess> access() const;
    // The key of --key.
    [[nodiscard]] Result<fleet::SigningKey> key() const;

    // Adds --valid, for what is signed.
    void add_validity_to(Arguments& command);
    // Its seconds.
    [[nodiscard]] Result<std::uint64_t> validity() const;

    [[nodiscard]] const std::string& key_file() const { return key_; }
    // What this key published last for the fleet, and what it has published now.
    [[nodiscard]] Result<std::uint64_t> last_serial() const;
    void keep_serial(std::uint64_t serial, const Context& context) const;

  private:
    std::string fleet_;
    std::string configuration_;
    std::string key_;
    std::uint32_t valid_days_ = fleet::standard_validity / 86400;
};

} // namespace sieve::cli
