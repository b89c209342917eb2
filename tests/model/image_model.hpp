// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A slow, independent reading of a filter image, written from the format's description and from the papers.
// It includes none of the headers that the kernel and user space share, so that a fault in these headers
// shows as a difference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "model/exact_model.hpp"
#include "model/ranges_model.hpp"

namespace sieve::model {

using Key = std::array<std::uint64_t, 5>;

// A blocked Bloom filter, or a XORSAT filter, as a set of (line, bit) pairs that are one; or a filter of kind
// ranges or exact, which ranges_model.hpp and exact_model.hpp read.
class FilterImage {
  public:
    explicit FilterImage(std::span<const unsigned char> bytes);

    // Whether the model reads images of the kind with this number.
    [[nodiscard]] static bool reads(unsigned kind) {
        return kind == blocked || kind == xorsat || kind == ranges || kind == exact;
    }

    // Blocked: algorithm 4 of the one-plus-alpha paper: all bits of one of the key's lines are one. XORSAT:
    // the equations of docs/xorsat.md, one by one. Ranges: the address is in one of them. Exact: one of two
    // places holds the address, and its entry has not ended at that time, in nanoseconds; or one of the
    // records of the key's tag is the key.
    [[nodiscard]] bool contains(const Key& key, std::uint64_t now = 0) const;

    // Of a joint filter (its header's byte 7 says how many sets it has): the number that the key's equations
    // give, bit by bit, or nothing if no set has that number.
    [[nodiscard]] std::optional<std::uint64_t> names(const Key& key) const;

    // The bits that the key sets in its line, by their number in the line (0..511), without repetitions.
    [[nodiscard]] std::set<unsigned> pattern(std::uint64_t test) const;

    // The lines that may hold the key.
    [[nodiscard]] std::vector<std::uint64_t> lines(std::uint64_t locate) const;

    // Both words of the keyed hash.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> hash(const Key& key) const;

  private:
    static constexpr unsigned blocked = 1;
    static constexpr unsigned xorsat = 6;
    static constexpr unsigned ranges = 7;
    static constexpr unsigned exact = 8;

    [[nodiscard]] bool bit(std::uint64_t line, unsigned bit) const;
    [[nodiscard]] std::uint64_t remainder(std::uint64_t locate, std::uint64_t test) const;
    [[nodiscard]] bool contains_hash(std::pair<std::uint64_t, std::uint64_t> hash) const;
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> hash_prefix(const Key& key, unsigned length) const;
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t>
    hash_probe(const Key& key, unsigned source, unsigned destination, unsigned transport) const;
    [[nodiscard]] std::uint64_t number(std::size_t offset, std::size_t size) const;

    std::vector<unsigned char> bytes_;
    unsigned kind_;
    unsigned fields_;
    unsigned choices_;
    unsigned hashes_;
    std::uint64_t line_count_;
    std::uint64_t alpha_;
    bool prefixes_;
    std::uint64_t shards_;
    std::array<std::uint32_t, 12> nh_key_; // 32-bit words, in the order of UMAC
    std::optional<RangesImage> ranges_;
    std::optional<ExactImage> exact_;
};

} // namespace sieve::model
