// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact list behind a filter: every claim, found by its prefix, and by the time at which it ends.
//
// Memory: one slot of 48 bytes per claim in a hash table that is at most three quarters full, and 48 bytes
// for each claim that ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "libsieve/service/lists/claim.hpp"

namespace sieve::service::live {

class ClaimList {
  public:
    ClaimList();

    // Adds a claim, or moves the end of one that is there. True if the prefix was not on the list before.
    bool add(const Claim& claim);
    // Removes the claim of that prefix and number. True if the prefix is no longer on the list. A claim that
    // is not there is none to remove.
    bool remove(const Prefix& prefix, std::uint64_t id);

    [[nodiscard]] bool contains(const Prefix& prefix) const;
    [[nodiscard]] std::optional<Claim> find(const Prefix& prefix, std::uint64_t id) const;
    // The number of claims of that prefix.
    [[nodiscard]] std::uint64_t count(const Prefix& prefix) const;
    [[nodiscard]] std::size_t claims() const { return claims_; }     // of all prefixes
    [[nodiscard]] std::size_t prefixes() const { return prefixes_; } // distinct ones

    // When the next claim ends; nothing if none ever does.
    [[nodiscard]] std::optional<Time> next_expiry();
    // The claims that have ended by then. They stay on the list until they are removed.
    [[nodiscard]] std::vector<Claim> expired(Time now);

    // Every claim, in no particular order.
    void for_each(const std::function<void(const Claim& claim)>& visit) const;
    // Every prefix once, in no particular order.
    void for_each_prefix(const std::function<void(const Prefix& prefix)>& visit) const;

  private:
    struct Slot {
        std::uint64_t upper = 0; // of the address
        std::uint64_t lower = 0;
        std::uint64_t id = 0;
        std::int64_t until = 0;  // in milliseconds since 1970
        std::uint8_t length = 0; // 0: the slot is free

        [[nodiscard]] bool has(const Prefix& prefix) const;
        [[nodiscard]] Claim claim() const;
    };
    struct Ending {
        Time until;
        Prefix prefix;
        std::uint64_t id = 0;
        friend bool operator<(const Ending& a, const Ending& b) {
            return a.until > b.until;
        } // earliest on top
    };

    [[nodiscard]] std::size_t home(const Prefix& prefix) const;
    [[nodiscard]] std::size_t next(std::size_t index) const { return (index + 1) & (slots_.size() - 1); }
    [[nodiscard]] std::optional<std::size_t> index_of(const Prefix& prefix, std::uint64_t id) const;
    void free_slot(std::size_t index);
    void put(const Slot& slot);
    void grow();
    void note_ending(const Claim& claim);
    [[nodiscard]] bool is_current(const Ending& ending) const;

    std::vector<Slot> slots_;
    std::size_t claims_ = 0;
    std::size_t prefixes_ = 0;
    std::priority_queue<Ending> endings_; // one that no longer fits its claim is skipped
};

} // namespace sieve::service::live
