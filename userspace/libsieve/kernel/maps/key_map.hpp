// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys inserted into a filter since it was built (sieve/inserted.h): a BPF hash map in the kernel, read
// and changed key by key.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

// What is noted about a key. An exact set (exact_set.hpp) has no ends.
struct KeyNote {
    std::uint64_t end = 0;   // nanoseconds of CLOCK_BOOTTIME; 0: never
    std::uint32_t state = 0; // enum sieve_inserted_state, or enum sieve_exact_state

    [[nodiscard]] friend bool operator==(const KeyNote&, const KeyNote&) = default;
};

struct NotedKey {
    sieve_key key{};
    KeyNote note;
};

class KeyMap {
  public:
    static Result<KeyMap> open(std::uint32_t map_id);

    [[nodiscard]] Result<std::optional<KeyNote>> find(const sieve_key& key) const;
    // Adds the key, or changes its note. False if the map is full.
    [[nodiscard]] Result<bool> put(const sieve_key& key, const KeyNote& note) const;
    [[nodiscard]] Status erase(const sieve_key& key) const; // no error if it is not there
    // All keys, in no order.
    [[nodiscard]] Result<std::vector<NotedKey>> all() const;
    [[nodiscard]] std::uint32_t most() const { return most_; } // keys that it has room for

  private:
    KeyMap(UniqueFd fd, std::uint32_t most) : fd_(std::move(fd)), most_(most) {}

    UniqueFd fd_;
    std::uint32_t most_;
};

// A map of these inserted keys, with room for `most` of them in all. Its memory is 16 bytes for each that it
// has room for, rounded up to a power of two, and about 110 bytes for each key that it holds. `name` is the
// set's.
[[nodiscard]] Result<UniqueFd> create_inserted_map(const std::string& name, std::uint32_t most,
                                                   std::span<const NotedKey> keys = {});

} // namespace sieve::kernel
