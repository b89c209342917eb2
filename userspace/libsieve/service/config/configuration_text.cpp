// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_text.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/service/config/configuration_fleet.hpp"
#include "libsieve/service/config/configuration_interfaces.hpp"
#include "libsieve/service/config/configuration_service.hpp"
#include "libsieve/service/config/configuration_sets.hpp"
#include "libsieve/service/config/toml_text.hpp"
#include "libsieve/util/files/digest.hpp"

namespace sieve::service {

namespace {

std::string text_of(const SetConfiguration& set) {
    TomlText text = text_of_keys(set_keys(), set);
    write_keys(build_keys(), text, set);
    return fmt::format("\n[set.{0}]\n{1}\n[set.{0}.guards]\n{2}", quoted(set.name), text.lines(),
                       text_of_keys(guard_keys(), set.guards).lines());
}

std::string text_of(const FleetConfiguration& fleet) {
    return fmt::format(
        "\n[fleet]\n{}\n[fleet.etcd]\n{}\n[fleet.store]\n{}", text_of_keys(fleet_keys(), fleet).lines(),
        text_of_keys(etcd_keys(), fleet.etcd).lines(), text_of_keys(store_keys(), fleet.store).lines());
}

} // namespace

std::string configuration_text(const Configuration& configuration) {
    std::string text = "[service]\n" + text_of_keys(service_keys(), configuration).lines();
    for (const InterfaceConfiguration& entry : configuration.interfaces)
        text += "\n[[interface]]\n" + text_of_keys(interface_keys(), entry).lines();
    for (const SetConfiguration& set : configuration.sets) text += text_of(set);
    if (configuration.fleet) text += text_of(*configuration.fleet);
    return text;
}

std::string build_text(const SetConfiguration& set) {
    TomlText text;
    write_keys(deciding_keys(), text, set);
    // What a list without a kind leads to (build/default_kind.hpp), so that another rule builds it again.
    if (set.feed.build.kind.kind == automatic_kind) text.word("auto", "exact, ranges or a filter");
    text.flag("verify", set.verify);
    write_keys(guard_keys(), text, set.guards);
    // What a source must no longer hand over does not stay in force as known.
    text.flag("image", std::ranges::all_of(set.sources, may_be_image));
    return text.lines();
}

std::string action_text(const SetConfiguration& set) {
    TomlText text;
    write_keys(action_keys(), text, set);
    return text.lines();
}

std::string action_digest(const Configuration& configuration, const SetConfiguration& set) {
    std::set<std::string> natural;
    for (const InterfaceConfiguration& entry : configuration.interfaces)
        if (!set.action && std::ranges::find(entry.sets, set.name) != entry.sets.end())
            natural.insert(control::action_name(control::natural_action(entry.default_action).action));
    return digest_of(fmt::format("{}{}", action_text(set), fmt::join(natural, " ")));
}

} // namespace sieve::service
