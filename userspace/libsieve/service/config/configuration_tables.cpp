// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_tables.hpp"

#include "libsieve/service/config/configuration_fleet.hpp"
#include "libsieve/service/config/configuration_interfaces.hpp"
#include "libsieve/service/config/configuration_service.hpp"
#include "libsieve/service/config/configuration_sets.hpp"
#include "libsieve/service/config/configuration_sources.hpp"

namespace sieve::service {

namespace {

template <class Table>
TableFacts facts_of(const char* name, const ConfigurationKeys<Table>& keys) {
    TableFacts facts{name, {}};
    for (const ConfigurationKey<Table>& key : keys)
        facts.keys.push_back({key.name, key.form, key.help, text_of_keys<Table>({key}, Table{}).lines()});
    return facts;
}

} // namespace

std::vector<TableFacts> configuration_tables() {
    return {
        facts_of("[service]", service_keys()),
        facts_of("[[interface]]", interface_keys()),
        facts_of("[set.NAME]", joined<SetConfiguration>({set_keys(), build_keys()})),
        facts_of("[set.NAME.guards]", guard_keys()),
        facts_of("url", http_keys()),
        facts_of("command", command_keys()),
        facts_of("crowdsec", crowdsec_keys()),
        facts_of("[fleet]", fleet_keys()),
        facts_of("[fleet.etcd]", etcd_keys()),
        facts_of("[fleet.store]", store_keys()),
    };
}

} // namespace sieve::service
