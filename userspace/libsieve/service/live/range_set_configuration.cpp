// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/range_set_configuration.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "libsieve/kernel/maps/set_table.hpp"

namespace sieve::service::live {

std::string range_set_name(const std::string& set) {
    return set + range_set_suffix;
}

Result<Configuration> with_range_sets(Configuration configuration) {
    std::vector<SetConfiguration> range_sets;
    for (const SetConfiguration& set : configuration.sets) {
        if (!follows_stream(set)) continue;
        SetConfiguration range_set = set;
        range_set.name = range_set_name(set.name);
        if (!kernel::is_set_name(range_set.name))
            return bad_input(fmt::format("set {}: follows a stream, and its ranges are kept in a set "
                                         "{}: that name is too long, expected at most "
                                         "{} characters",
                                         set.name, range_set.name, SIEVE_NAME_BYTES - 1));
        if (configuration.find_set(range_set.name) != nullptr)
            return bad_input(fmt::format(
                "set {}: set {} follows a stream, and its ranges are kept in a set of this name; expected "
                "another name",
                range_set.name, set.name));
        range_set.sources.clear();
        range_set.feed.build = control::FeedSpec().build; // of the kind that the list leads to
        range_set.feed.chosen.clear();
        range_sets.push_back(std::move(range_set));
    }
    for (const SetConfiguration& range_set : range_sets) {
        const std::string name =
            range_set.name.substr(0, range_set.name.size() - sizeof(range_set_suffix) + 1);
        for (InterfaceConfiguration& entry : configuration.interfaces)
            if (const auto at = std::find(entry.sets.begin(), entry.sets.end(), name); at != entry.sets.end())
                entry.sets.insert(at + 1, range_set.name);
        configuration.sets.push_back(range_set);
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

bool is_range_set(const Configuration& configuration, const std::string& set) {
    const SetConfiguration* found = configuration.find_set(set);
    return found != nullptr && found->sources.empty() && set.ends_with(range_set_suffix);
}

} // namespace sieve::service::live
