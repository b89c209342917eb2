// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/safety/entry_safety.hpp"

#include <iterator>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/safety/guards.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

// Sets whose guards let them take packets of the host's addresses.
std::set<std::string> exempt_sets(const Configuration& configuration) {
    std::set<std::string> exempt;
    for (const SetConfiguration& set : configuration.sets)
        if (!set.guards.protect_host) exempt.insert(set.name);
    return exempt;
}

} // namespace

EntrySafety::EntrySafety(const Configuration& configuration, const InterfaceConfiguration& entry,
                         const control::Safety& safety)
    : entry_(entry), host_(entry.protect_host ? safety.host : nullptr),
      safety_{.host = safety.host != nullptr && (host_ != nullptr || !entry.protect.empty()) ? this : nullptr,
              .exempt = exempt_sets(configuration),
              .confirm_within = safety.confirm_within} {}

Result<std::vector<HostAddress>> EntrySafety::read() {
    std::vector<HostAddress> all;
    if (host_ != nullptr) {
        SIEVE_ASSIGN(all, host_->read());
    }
    std::vector<AddressRange> ranges;
    for (const std::string& text : entry_.protect) ranges.push_back(protected_range(text));
    SIEVE_ASSIGN(std::vector<HostAddress> listed,
                 control::listed_addresses(ranges, "which protect names in the [[interface]]"));
    std::move(listed.begin(), listed.end(), std::back_inserter(all));
    return all;
}

std::string lockout_text(const Error& refused, const InterfaceConfiguration* entry) {
    const std::string& set = refused.facts.set;
    const bool listed = entry != nullptr && !entry->protect_host;
    // Without a set that drops, it is the default.
    const char* const lists = set.empty() ? "put what must pass into the list of a set that passes"
                                          : "take it out of the list, or name it in the set's exceptions";
    if (listed)
        return fmt::format("{}; {}, or take it out of protect in the [[interface]]", refused.message, lists);
    const std::string guards =
        set.empty() ? std::string() : fmt::format(", or in [set.{}.guards]", printable(set));
    const char* const listed_too =
        entry != nullptr && !entry->protect.empty() ? "take it out of protect, or " : "";
    return fmt::format("{}; {}, or {}set protect-host = false in the [[interface]]{}", refused.message, lists,
                       listed_too, guards);
}

} // namespace sieve::service
