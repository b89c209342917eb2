// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact set of a prefix set that changes while it is in force, as a map of its entries
// (filters/prefixes/prefix_entries.hpp). Beside each entry it keeps the stored keys, which packets ask for.
#pragma once

#include <memory>
#include <vector>

#include "libsieve/control/access/filters.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

class ExactEntries final : public RunningKeys {
  public:
    ExactEntries(std::unique_ptr<RunningKeys> exact, const StoredKeys& stored)
        : exact_(std::move(exact)), stored_(stored) {}

    [[nodiscard]] Result<std::optional<kernel::KeyNote>> find(const sieve_key& entry) override;
    // Also adds what is stored for the entry, all or nothing.
    [[nodiscard]] Result<bool> put(const sieve_key& entry, const kernel::KeyNote& note) override;
    // Also removes what is stored for the entry and for no other one. The entry itself goes last: while it is
    // there, a later controller can finish the work.
    [[nodiscard]] Status erase(const sieve_key& entry) override;
    [[nodiscard]] Result<std::vector<kernel::NotedKey>> all() override;
    [[nodiscard]] std::uint64_t most() override { return exact_->most(); }

  private:
    [[nodiscard]] Result<bool> is_entry(const sieve_key& prefix);
    class Shared;
    // What is stored for the entry and for no other one.
    [[nodiscard]] Result<std::vector<sieve_key>> keys_of_nobody_else(const sieve_key& entry);

    std::unique_ptr<RunningKeys> exact_;
    StoredKeys stored_;
};

// The exact set with that id, of a filter: its keys, or the entries of a prefix set.
[[nodiscard]] Result<std::unique_ptr<RunningKeys>> open_exact_entries(Filters& kernel, std::uint32_t exact_id,
                                                                      const StoredKeys& stored);

} // namespace sieve::control
