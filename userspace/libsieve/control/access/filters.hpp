// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Filters in force, and the keys beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/kernel/maps/filter_header.hpp"
#include "libsieve/kernel/maps/key_map.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::control {

// The lines of a filter in force. Packets see what is written there.
class RunningFilter {
  public:
    virtual ~RunningFilter() = default;
    [[nodiscard]] virtual const sieve_lookup& lookup() const = 0;
    [[nodiscard]] virtual const sieve_probes& probes() const = 0;
    [[nodiscard]] virtual sieve_file& file() = 0;
    [[nodiscard]] virtual std::span<sieve_line> lines() = 0;
    // A sample of its members, and what it promises not to match. A joint filter has neither.
    [[nodiscard]] virtual std::span<const sieve_witness> witnesses() = 0;
    [[nodiscard]] virtual std::span<const sieve_exception> exceptions() = 0;
};

// The keys beside a filter in force: its exact set, or the keys inserted since it was built.
class RunningKeys {
  public:
    virtual ~RunningKeys() = default;
    [[nodiscard]] virtual Result<std::optional<kernel::KeyNote>> find(const sieve_key& key) = 0;
    // Adds the key, or changes its note. False if the map is full.
    [[nodiscard]] virtual Result<bool> put(const sieve_key& key, const kernel::KeyNote& note) = 0;
    [[nodiscard]] virtual Status erase(const sieve_key& key) = 0; // no error if it is not there
    [[nodiscard]] virtual Result<std::vector<kernel::NotedKey>> all() = 0;
    [[nodiscard]] virtual std::uint64_t most() = 0; // keys that there is room for
};

class Filters {
  public:
    virtual ~Filters() = default;

    [[nodiscard]] virtual Result<kernel::FilterHeader> read_filter(std::uint32_t map_id) = 0;
    // The memory of an exact set.
    [[nodiscard]] virtual Result<std::uint64_t> exact_bytes(std::uint32_t exact_id) = 0;

    [[nodiscard]] virtual Result<std::unique_ptr<RunningFilter>> open_filter(std::uint32_t map_id) = 0;
    // The joint filter of a table.
    [[nodiscard]] virtual Result<std::unique_ptr<RunningFilter>> open_joint(std::uint32_t map_id) = 0;
    // The exact set with that id; the map of inserted keys with that id.
    [[nodiscard]] virtual Result<std::unique_ptr<RunningKeys>> open_exact(std::uint32_t exact_id) = 0;
    [[nodiscard]] virtual Result<std::unique_ptr<RunningKeys>> open_inserted(std::uint32_t inserted_id) = 0;
    // Any map in force, for a WantedTable of start_replay().
    [[nodiscard]] virtual Result<UniqueFd> open_map(std::uint32_t map_id) = 0;
    // A map of these inserted keys of a set, with room for `most` in all. WantedSet takes the descriptor.
    [[nodiscard]] virtual Result<UniqueFd> make_inserted(const std::string& name, std::uint32_t most,
                                                         std::span<const kernel::NotedKey> keys) = 0;
    // Returns once every lookup in a filter in force that was under way when it was called has ended. See
    // kernel/host/grace_period.hpp.
    [[nodiscard]] virtual Status grace_period() = 0;
    // Nanoseconds since the machine started, the time that it slept included (CLOCK_BOOTTIME).
    [[nodiscard]] virtual std::uint64_t boot_time() = 0;
};

} // namespace sieve::control
