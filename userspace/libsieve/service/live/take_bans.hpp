// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Bans on their way into a ledger: for which set they are, and whether they may be. The daemon does this for
// those who ask it, and a command for itself where no daemon runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/lists/ban.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/state/ban_ledger.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// The sets whose source is the ledger.
[[nodiscard]] std::vector<std::string> sets_with_bans(const Configuration& configuration);

// The set that is meant; `named` may be empty. Error: invalid_request, with the sets to choose from.
[[nodiscard]] Result<std::string> set_for_bans(const Configuration& configuration, const std::string& named);

struct BanRequest {
    std::string set{}; // empty: the only one
    std::vector<BanChange> changes{};
    bool counts = false; // whoever asks wants to know what was banned before
};

struct TakenBans {
    std::string set{};
    std::vector<Prefix> absent{}; // to be removed, and not there. If all are, nothing was changed
    std::uint64_t lifted = 0;     // bans that went
    BanLedger::Mark mark{};       // where the ledger has the change
};

// Puts the change into the ledger of the set, as a whole or not at all. Errors: those of set_for_bans() and
// of BanLedger::append(); bad_input for a ban of what this host depends on, or of too many addresses.
// `banned` may know that a single address is banned, without a look into the ledger; null: nobody does.
[[nodiscard]] Result<TakenBans> take_bans(const BanRequest& request, const Configuration& configuration,
                                          HostAddresses& host, BanLedger& ledger, Time now,
                                          const std::function<bool(const Prefix& single)>& banned = {});

struct SetBans {
    std::string set{};
    std::vector<BanChange> bans{}; // additions, in no particular order
};
// What is banned: in the set of that name, or in all if it is empty.
[[nodiscard]] Result<std::vector<SetBans>> list_bans(const Configuration& configuration,
                                                     const std::string& set, Time now);

} // namespace sieve::service::live
