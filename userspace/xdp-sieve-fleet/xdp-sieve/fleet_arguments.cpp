// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve-fleet/xdp-sieve/fleet_arguments.hpp"

#include <curl/curl.h>

#include <fmt/core.h>

#include "libsieve/fleet/manifest/publisher_serials.hpp"
#include "libsieve/service/config/configuration_reader.hpp"

namespace sieve::cli {

void FleetArguments::add_to(Arguments& command) {
    configuration_ = service::standard_configuration;
    command.add("--fleet", fleet_, "the fleet").called("FLEET");
    command.add("--config", configuration_, "the configuration, whose [fleet] names etcd and the store")
        .called("CONFIG")
        .show_default();
    command.add("--key", key_, "the file of the signing key").called("FILE");
}

void FleetArguments::add_validity_to(Arguments& command) {
    command
        .add("--valid", valid_days_,
             "how long nodes that have no manifest yet may take this one, if none follows it")
        .called("DAYS")
        .show_default();
}

Result<std::uint64_t> FleetArguments::validity() const {
    constexpr std::uint64_t day = 86400; // seconds
    if (valid_days_ == 0 || valid_days_ > fleet::longest_validity / day)
        return invalid_request(
            fmt::format("--valid {}: expected 1 to {} days", valid_days_, fleet::longest_validity / day));
    return valid_days_ * day;
}

Result<fleet::FleetAccess> FleetArguments::access() const {
    if (fleet_.empty()) return invalid_request("expected --fleet FLEET");
    if (::curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return failure(ErrorKind::out_of_memory, "libcurl cannot be used");
    SIEVE_ASSIGN(const service::Configuration configuration, service::load_configuration(configuration_));
    if (!configuration.fleet) return bad_input(fmt::format("{}: has no [fleet]", configuration_));
    if (configuration.fleet->name != fleet_)
        return invalid_request(fmt::format("--fleet {}: {} is a configuration of fleet {}", fleet_,
                                           configuration_, configuration.fleet->name));
    return fleet::open_access(*configuration.fleet);
}

Result<std::uint64_t> FleetArguments::last_serial() const {
    return fleet::last_serial(key_, fleet_);
}

void FleetArguments::keep_serial(std::uint64_t serial, const Context& context) const {
    if (Status kept = fleet::keep_serial(key_, fleet_, serial); !kept)
        remark(context, fmt::format("the serial of what is published is not kept, so an older manifest that "
                                    "somebody puts back would not be noticed: {}",
                                    kept.error().message));
}

Result<fleet::SigningKey> FleetArguments::key() const {
    if (key_.empty()) return invalid_request("expected --key FILE, the signing key");
    return fleet::SigningKey::read(key_);
}

} // namespace sieve::cli
