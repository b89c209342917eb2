// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Inserts keys into a d-left counting filter (sieve/ddlcbf.h), in an image or in the map of a running
// program, and deletes them. Source: d-left paper (Allerton 2006), section III.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/ddlcbf.h>

#include "libsieve/filters/filter_kind.hpp"
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_bucket.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// The choices for a counting filter besides its size.
struct DdlcbfShape {
    std::uint32_t subtables = 4;
    std::uint32_t counter_bits = 1; // 0, 1 or 2
    std::uint32_t minimal = 8;      // bits of the minimal remainder, 4 to 15
    std::uint32_t fixed_cells =
        0; // 0: remainders shrink as buckets fill (ddlCBF); else this many cells (dlCBF)

    // A bucket's shape in one 64-bit word.
    [[nodiscard]] CountingShape bucket() const;
    // Returns an error that says what is wrong with the shape, if anything is.
    [[nodiscard]] Status check() const;
};

// Stores the shape in an image's header, and reads it back. `lookup.buckets` is left alone.
void store_shape(const DdlcbfShape& shape, sieve_lookup& lookup);
DdlcbfShape ddlcbf_shape_of(const sieve_lookup& lookup);

// Encodes a bucket as its word, and decodes it.
std::uint64_t encode_counting_bucket(const CountingBucket& bucket, const CountingShape& shape);
CountingBucket decode_counting_bucket(std::uint64_t word, const CountingShape& shape);

// The cost of exchanges: remainders never grow again, so the highest load that a bucket ever had limits how
// good it is. Example: 100,000 keys at 21.3 bits a key, four subtables, one-bit counters, minimal remainder
// 9. The rate is 1.5e-4 after filling and 2.9e-3 after two million exchanges (minimal remainder 11: 1.6e-3; 9
// without counters: 1.5e-3). A rebuild restores the rate.
//
// Works on lines that it does not own. They may be those of a map that a program reads at the same time: each
// change is one aligned 64-bit store (sieve/ddlcbf.h says why that suffices). One writer at a time.
class DdlcbfFilter final : public ChangeableFilter {
  public:
    // `lookup` is copied; `lines` (lookup.choices times lookup.buckets) must stay where they are. All-zero
    // lines are an empty filter. Errors: a shape that does not exist, lines that do not match.
    static Result<DdlcbfFilter> open(const sieve_lookup& lookup, std::span<sieve_line> lines);

    [[nodiscard]] bool contains(const sieve_hash& hash) const override;

    // Adds a key (once more, if the filter holds it already). Error: the key's buckets are full; nothing has
    // changed.
    Status insert(const sieve_hash& hash) override;

    // Deletes a key that was inserted. Error: the filter does not contain the key; nothing has changed. The
    // filter cannot tell a key that was never inserted but is a false positive from one that was inserted.
    // Deleting such a key would lose another key, so callers must know their set.
    Status erase(const sieve_hash& hash) override;

    // The exact false positive rate over random keys.
    [[nodiscard]] double expected_fpr() const override;

    struct Fill {
        std::uint64_t keys = 0;                                // keys counted by counters included
        std::uint64_t loads[SIEVE_DDLCBF_MAX_CELLS + 1] = {};  // buckets by cells in use
        std::uint64_t maxima[SIEVE_DDLCBF_MAX_CELLS + 1] = {}; // buckets by cells ever in use at once
    };
    [[nodiscard]] Fill fill() const;

  private:
    DdlcbfFilter(const sieve_lookup& lookup, std::span<sieve_line> lines);

    [[nodiscard]] CountingBucket read(const sieve_ddlcbf_address& address) const;
    void write(const sieve_ddlcbf_address& address, const CountingBucket& bucket);

    sieve_lookup lookup_;
    std::span<sieve_line> lines_;
    DdlcbfShape shape_;
    CountingShape bucket_;
};

} // namespace sieve
