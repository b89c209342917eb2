// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Hashes of keys on disk, for lists that are larger than the memory that a build may take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sieve/hash.h>

#include "libsieve/filters/placement/hash_sum.hpp"
#include "libsieve/util/files/temporary_file.hpp"
#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// A temporary file of hashes (util/files/temporary_file.hpp), parted by the upper bits of the lower half of
// `locate`: the part with number p holds the hashes of some shards (filters/placement/shards.hpp). The hashes
// are keyed with the build's secret, so they do not give the keys away.
//
// First append() any number of times, then sort() once, then ask. Errors are those of the file.
class HashFile {
  public:
    static constexpr unsigned part_bits = 10;
    static constexpr std::size_t parts = std::size_t{1} << part_bits;

    // Takes about `memory` bytes to collect hashes in before they are written.
    [[nodiscard]] static Result<HashFile> create(std::uint64_t memory);

    // The least `memory` that is of use: smaller writes than this would be slow.
    static constexpr std::uint64_t least_memory = parts * 64 * sizeof(sieve_hash);

    [[nodiscard]] Status append(std::span<const sieve_hash> hashes);

    // Sorts each part by hash_order and drops repetitions. Runs on as many threads as `memory` bytes allow.
    // invalid_request: they are too few for the largest part.
    [[nodiscard]] Status sort(std::uint64_t memory);

    // The hashes in the file: all that were appended, and after sort() the distinct ones.
    [[nodiscard]] std::uint64_t size() const;
    // Of the distinct hashes, after sort().
    [[nodiscard]] const HashSum& sum() const { return sum_; }
    // The memory that the largest of the groups takes, when each group is 2^bits parts side by side.
    [[nodiscard]] std::uint64_t bytes_of_largest(unsigned bits) const;

    // The hashes of `count` parts from `first` on, in hash_order. Any number of threads may call it.
    [[nodiscard]] Result<HugeArray<sieve_hash>> read(std::size_t first, std::size_t count) const;

    // Whether the hash is in the file, which was sorted. Any number of threads may call it.
    [[nodiscard]] Result<bool> holds(const sieve_hash& hash) const;

  private:
    struct Part {
        std::vector<std::uint32_t> blocks{}; // their numbers in the file
        std::uint64_t written = 0;           // hashes in the blocks; all blocks but the last are full
        std::uint32_t waiting = 0;           // hashes in memory
    };

    HashFile(TemporaryFile file, std::size_t block_hashes);
    [[nodiscard]] Status flush(std::size_t part);
    [[nodiscard]] Status write(const Part& part, std::span<const sieve_hash> hashes) const;
    [[nodiscard]] Status read(const Part& part, std::span<sieve_hash> hashes) const;
    [[nodiscard]] std::uint64_t offset_of(std::uint64_t block) const;

    TemporaryFile file_;
    std::size_t block_hashes_;
    std::uint32_t blocks_ = 0; // in the file
    std::vector<Part> parts_;
    HashSum sum_;
    HugeArray<sieve_hash> waiting_; // a block for each part
};

} // namespace sieve
