// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An exact set: the keys of a set in a BPF hash map, against which a filter's matches are verified.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <sieve/exact.h>

#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::kernel {

class ExactMap {
  public:
    // Makes a map of these keys (sieve/exact.h), which are distinct, with room for so many more. `name` is
    // what `bpftool map` shows.
    static Result<ExactMap> create(std::span<const sieve_key> keys, const std::string& name,
                                   std::uint64_t room = 0);

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] std::uint32_t id() const { return id_; }
    [[nodiscard]] std::uint64_t keys() const { return keys_; } // room included
    [[nodiscard]] std::uint64_t bytes() const;

  private:
    ExactMap(UniqueFd fd, std::uint32_t id, std::uint64_t keys) : fd_(std::move(fd)), id_(id), keys_(keys) {}

    UniqueFd fd_;
    std::uint32_t id_;
    std::uint64_t keys_;
};

// The kernel memory of an exact set: 96 bytes for each key (48 of the kernel's own, the key, the value in a
// word) and 16 for each bucket. The number of buckets is a power of two.
[[nodiscard]] std::uint64_t exact_map_bytes(std::uint64_t keys);

// How many keys the exact set whose map has this id has room for.
[[nodiscard]] Result<std::uint64_t> read_exact_keys(std::uint32_t map_id);

} // namespace sieve::kernel
