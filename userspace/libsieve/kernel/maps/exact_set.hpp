// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An exact set: the keys of a set as records (sieve/records.h) in a BPF array, against which a filter's
// matches are verified.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sieve/exact.h>

#include "libsieve/filters/records.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/maps/key_map.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

class ExactSet {
  public:
    // Makes the exact set of an image of these keys (sieve/exact.h), with room for so many more. Without
    // room, no key may come or go. `name` is what `bpftool map` shows. bad_input: a key is of other fields
    // than the image.
    static Result<ExactSet> create(const Image& image, std::span<const sieve_key> keys,
                                   const std::string& name, std::uint64_t room = 0);

    [[nodiscard]] int fd() const { return map_.fd(); }
    [[nodiscard]] std::uint32_t id() const { return map_.id(); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    ExactSet(FilterMap map, std::uint64_t bytes) : map_(std::move(map)), bytes_(bytes) {}

    FilterMap map_;
    std::uint64_t bytes_;
};

// The kernel memory of the exact set whose map has this id.
[[nodiscard]] Result<std::uint64_t> read_exact_bytes(std::uint32_t map_id);

// An exact set in force: packets see what is written here. A note's state is an enum sieve_exact_state; there
// are no ends. A writer holds the Lock.
class MappedExactSet {
  public:
    // Error: the map holds no exact set.
    static Result<MappedExactSet> open(std::uint32_t map_id);
    MappedExactSet(MappedExactSet&& other) noexcept;
    MappedExactSet& operator=(MappedExactSet&& other) noexcept;
    ~MappedExactSet();

    [[nodiscard]] std::optional<KeyNote> find(const sieve_key& key) const;
    // Adds the key, or changes its note. False if there is no room for it. Waits for a grace period if only
    // places are free whose keys went a moment ago.
    [[nodiscard]] Result<bool> put(const sieve_key& key, const KeyNote& note);
    [[nodiscard]] Status erase(const sieve_key& key); // which may be absent
    // All keys, in no order.
    [[nodiscard]] std::vector<NotedKey> all() const;
    [[nodiscard]] std::uint32_t most() const { return records().header().most; } // keys that it was made for

  private:
    MappedExactSet(sieve_line* lines, std::size_t count) : lines_(lines), count_(count) {}
    [[nodiscard]] Records records() const { return Records({lines_, count_}); }

    sieve_line* lines_ = nullptr;
    std::size_t count_ = 0;
};

} // namespace sieve::kernel
