// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A guard's refusal may be answered once, by hand (`xdp-sieve accept`): the very list that was refused is
// then taken, and no other.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/service/state/refusals.hpp"
#include "libsieve/service/state/state_directory.hpp"

namespace sieve::service {

// What a person may accept in a refusal: not a list with an address that this host lives by. Nothing if it
// cannot be accepted.
[[nodiscard]] std::optional<RefusedList> refused_list(const Refusal& refusal, std::string digest,
                                                      const ListSize& now,
                                                      const std::optional<ListSize>& before);

// Notes the refused list, and adds to the refusal's message how to accept it. Whoever accepted another list
// of the set has accepted nothing any more.
void offer_acceptance(Refusal& refusal, const SetConfiguration& set, const Configuration& configuration,
                      const StateDirectory& state, const std::function<void(const std::string&)>& remark);

} // namespace sieve::service
