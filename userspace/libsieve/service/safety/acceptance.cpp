// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/safety/acceptance.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

bool may_be_accepted(Guard guard) {
    switch (guard) {
    case Guard::empty:
    case Guard::shrink:
    case Guard::growth:
    case Guard::coverage:
        return true;
    case Guard::protection:
    case Guard::lockout:
        return false;
    }
    return false;
}

} // namespace

std::optional<RefusedList> refused_list(const Refusal& refusal, std::string digest, const ListSize& now,
                                        const std::optional<ListSize>& before) {
    if (!may_be_accepted(refusal.guard)) return std::nullopt;
    RefusedList list;
    list.guard = guard_name(refusal.guard);
    list.why = refusal.message;
    list.digest = std::move(digest);
    list.entries = now.entries;
    if (now.extent) std::ranges::copy(now.extent->addresses, list.addresses.begin());
    if (before) list.entries_before = before->entries;
    if (before && before->extent) std::ranges::copy(before->extent->addresses, list.addresses_before.begin());
    return list;
}

void offer_acceptance(Refusal& refusal, const SetConfiguration& set, const Configuration& configuration,
                      const StateDirectory& state, const std::function<void(const std::string&)>& remark) {
    if (!refusal.list) return;
    refusal.list->refused_at = std::time(nullptr);
    if (Status noted = state.note_refused(set.name, *refusal.list); !noted)
        return remark(fmt::format("set {}: nobody can accept its list, since the refusal cannot be noted: {}",
                                  set.name, noted.error().message));
    refusal.accept = fmt::format("xdp-sieve accept {}{}", set.name,
                                 configuration.path == standard_configuration
                                     ? std::string()
                                     : " --config " + printable(configuration.path));
    refusal.message += fmt::format(", or take just this list, once, with `{}`", refusal.accept);
}

} // namespace sieve::service
