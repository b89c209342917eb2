// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/values/configuration.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::service {

const SetConfiguration* Configuration::find_set(std::string_view name) const {
    const auto found =
        std::find_if(sets.begin(), sets.end(), [&](const SetConfiguration& set) { return set.name == name; });
    return found == sets.end() ? nullptr : &*found;
}

constexpr std::string_view loopback = "lo";

const InterfaceConfiguration* entry_for(const Configuration& configuration, const std::string& interface,
                                        kernel::HookPoint hook) {
    const InterfaceConfiguration* found = nullptr;
    for (const InterfaceConfiguration& entry : configuration.interfaces) {
        if (entry.hook != hook) continue;
        if (entry.name == interface) return &entry;
        if (found == nullptr && entry.is_pattern() && interface != loopback &&
            ::fnmatch(entry.name.c_str(), interface.c_str(), 0) == 0)
            found = &entry;
    }
    return found;
}

bool follows_bans(const SetConfiguration& set) {
    return std::ranges::any_of(
        set.sources, [](const SourceSpec& source) { return std::holds_alternative<BanSpec>(source); });
}

bool follows_stream(const SetConfiguration& set) {
    return std::ranges::any_of(set.sources, is_stream);
}

const CrowdsecSpec* followed_stream(const SetConfiguration& set) {
    for (const SourceSpec& source : set.sources)
        if (const auto* stream = std::get_if<CrowdsecSpec>(&source)) return stream;
    return nullptr;
}

std::vector<SourceSpec> sources_of_lists(const SetConfiguration& set) {
    std::vector<SourceSpec> lists = set.sources;
    std::erase_if(lists, is_stream);
    return lists;
}

// Whether that holds for the set's action on any interface.
static bool does_anywhere(const Configuration& configuration, const SetConfiguration& set,
                          bool (*holds)(sieve_action action)) {
    return std::any_of(configuration.interfaces.begin(), configuration.interfaces.end(),
                       [&](const InterfaceConfiguration& entry) {
                           if (std::find(entry.sets.begin(), entry.sets.end(), set.name) == entry.sets.end())
                               return false;
                           return holds(set.action ? set.action->action
                                                   : control::natural_action(entry.default_action).action);
                       });
}

bool takes_packets(const Configuration& configuration, const SetConfiguration& set) {
    return does_anywhere(configuration, set, &control::takes_packets);
}

bool passes_packets(const Configuration& configuration, const SetConfiguration& set) {
    return does_anywhere(configuration, set, [](sieve_action action) { return action == SIEVE_ACTION_PASS; });
}

AddressRange protected_range(const std::string& text) {
    const Result<MemberText> member = parse_member(text, SIEVE_FIELD_SRC);
    if (!member) return {};
    const uint128 address = address_number(member->key.word[0], member->key.word[1]);
    return member->range.value_or(AddressRange{address, address});
}

bool guards_addresses(const SetConfiguration& set) {
    return entry::is_single_address(set.feed.fields);
}

bool asks_for_changes_in_place(const SetConfiguration& set) {
    if (set.feed.build.kind.kind == automatic_kind) return false;
    return kind_of(set.feed.build.kind.kind).facts().changes_live;
}

} // namespace sieve::service
