// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The keys of a set while a feed is read, when they must not take more than a given memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "libsieve/build/build_secret.hpp"
#include "libsieve/build/exceptions.hpp"
#include "libsieve/build/hash_file.hpp"
#include "libsieve/build/key_file.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/build/witness_draw.hpp"
#include "libsieve/filters/kind_builder.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// Limits below this are refused.
inline constexpr std::uint64_t least_memory_limit = std::uint64_t{16} << 20;

// How many keys of these fields a reader collects before it passes them on to SpilledKeys::add().
[[nodiscard]] std::size_t keys_at_once(std::uint32_t fields, std::uint64_t memory_limit);

// Hashes keys with the build's secret, and keeps the hashes on disk (build/hash_file.hpp). Of the keys
// themselves, only witnesses are kept, unless the build may have to draw another secret.
class SpilledKeys {
  public:
    // For a build with these options, whose memory_limit is set, and these exceptions. With exceptions or
    // keys to spare, the keys go to disk, too (build/key_file.hpp). Errors: invalid_request, if filters of
    // the kind must have all keys in memory at once; those of the files.
    [[nodiscard]] static Result<SpilledKeys> create(std::uint32_t fields, const BuildOptions& options,
                                                    const Exceptions& exceptions = {});

    // Takes further keys, in any order, with repetitions. Errors: those of the files.
    [[nodiscard]] Status add(const KeySet& keys);

    [[nodiscard]] std::uint32_t fields() const { return fields_; }
    [[nodiscard]] std::uint64_t entries() const { return entries_; }

    // For the builder, after the last add(). sort() comes first, and again after hash_again(), which replaces
    // all hashes and witnesses by those under another secret; the keys must have been kept. place() places
    // the keys in the image as KindBuilder::fill() does.
    [[nodiscard]] const BuildSecret& secret() const { return secret_; }
    [[nodiscard]] const HashFile& hashes() const { return hashes_; }
    [[nodiscard]] std::vector<sieve_key> witnesses() { return witnesses_.take(hashes_.size()); }
    [[nodiscard]] Status sort();
    [[nodiscard]] Status hash_again(const BuildSecret& secret);
    [[nodiscard]] Result<std::uint32_t> place(const KindBuilder& builder, Image& image, std::uint64_t seed,
                                              const Progress& progress) const;

  private:
    SpilledKeys(std::uint32_t fields, std::uint64_t limit, const BuildSecret& secret, HashFile hashes,
                std::optional<KeyFile> keys);
    [[nodiscard]] Status hash(const KeySet& keys);

    std::uint32_t fields_;
    std::uint64_t limit_;
    BuildSecret secret_;
    HashFile hashes_;
    WitnessDraw witnesses_;
    std::optional<KeyFile> keys_;
    std::uint64_t entries_ = 0;
};

// Builds the set whose keys were added. `options` and `exceptions` are those of SpilledKeys::create(). With
// the same seed, the image is the one that build_set() makes of the same list in memory. Errors: those of
// build_set(), of the files, and invalid_request if the filter and what its keys are placed with take more
// than the limit.
Result<BuiltSet> build_set(SpilledKeys keys, const BuildOptions& options, const Progress& progress,
                           const Exceptions& exceptions = {});

} // namespace sieve
