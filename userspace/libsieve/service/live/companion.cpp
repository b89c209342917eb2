// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/companion.hpp"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "libsieve/kernel/set_table.hpp"

namespace sieve::service::live {

std::string companion_name(const std::string& set) {
    return set + companion_suffix;
}

Result<Configuration> with_companions(Configuration configuration) {
    std::vector<SetConfiguration> companions;
    for (const SetConfiguration& set : configuration.sets) {
        if (!follows_stream(set)) continue;
        SetConfiguration companion = set;
        companion.name = companion_name(set.name);
        if (!kernel::is_set_name(companion.name))
            return bad_input(fmt::format("set {}: follows a stream, and its ranges are kept in a set "
                                         "{}: that name is too long, expected at most "
                                         "{} characters",
                                         set.name, companion.name, SIEVE_NAME_BYTES - 1));
        if (configuration.find_set(companion.name) != nullptr)
            return bad_input(fmt::format(
                "set {}: set {} follows a stream, and its ranges are kept in a set of this name; expected "
                "another name",
                companion.name, set.name));
        if (follows_bans(set)) { // whoever gives one may
            companion.guards.most_growth = std::numeric_limits<double>::infinity();
            companion.guards.most_shrink = 1;
        }
        companion.sources.clear();
        companion.feed.build = control::FeedSpec().build; // of the kind that the list leads to
        companion.feed.chosen.clear();
        companions.push_back(std::move(companion));
    }
    for (const SetConfiguration& companion : companions) {
        const std::string name =
            companion.name.substr(0, companion.name.size() - sizeof(companion_suffix) + 1);
        for (InterfaceConfiguration& entry : configuration.interfaces)
            if (const auto at = std::find(entry.sets.begin(), entry.sets.end(), name); at != entry.sets.end())
                entry.sets.insert(at + 1, companion.name);
        configuration.sets.push_back(companion);
    }
    for (const InterfaceConfiguration& entry : configuration.interfaces)
        if (entry.sets.size() > SIEVE_MAX_SETS)
            return bad_input(
                fmt::format("interface {}: {} sets, with those that keep the ranges of streams, but the "
                            "program takes at most {}",
                            entry.name, entry.sets.size(), SIEVE_MAX_SETS));
    std::sort(configuration.sets.begin(), configuration.sets.end(),
              [](const SetConfiguration& a, const SetConfiguration& b) { return a.name < b.name; });
    return configuration;
}

bool is_companion(const Configuration& configuration, const std::string& set) {
    const SetConfiguration* found = configuration.find_set(set);
    return found != nullptr && found->sources.empty() && set.ends_with(companion_suffix);
}

} // namespace sieve::service::live
