// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Writes and reads the bits of a d-left bucket: what sieve/dleft.h describes and tests, in plain steps.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <sieve/dleft.h>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// The choices for a d-left filter besides its size.
struct DleftShape {
    sieve_kind kind = SIEVE_KIND_DLEFT64;
    std::uint32_t subtables = 3;
    std::uint32_t sorting = 1; // sorted bits: 0; 1 (64: at loads 4 and 5); 2 (128 only: at loads 6 and 7)
    bool grouped = false;      // four buckets of a subtable share their bits; section II-C

    [[nodiscard]] bool wide() const { return kind == SIEVE_KIND_DLEFT128; }
    [[nodiscard]] std::uint32_t buckets_per_line() const {
        return 1U << (wide() ? SIEVE_DLEFT128_LINE_SHIFT : SIEVE_DLEFT64_LINE_SHIFT);
    }
    // The highest load that the counter can represent.
    [[nodiscard]] std::uint32_t top_load() const {
        return wide() ? SIEVE_DLEFT128_TOP_LOAD : SIEVE_DLEFT64_TOP_LOAD;
    }
    // The highest load at which a bucket tells keys apart. A fuller bucket matches everything.
    [[nodiscard]] std::uint32_t most_load() const {
        return grouped  ? top_load()
               : wide() ? top_load() + SIEVE_DLEFT_ALWAYS
                        : top_load() + SIEVE_DLEFT_ALWAYS - 1;
    }
    // Leading bits that semi-sorting makes implicit at that load; section II-B.
    [[nodiscard]] std::uint32_t sorted_bits(std::uint32_t load) const;
    // Bits that an ungrouped bucket stores of every fingerprint at that load.
    [[nodiscard]] std::uint32_t cell_width(std::uint32_t load) const;
    // The same for a group of four whose loads add up to `sum`.
    [[nodiscard]] std::uint32_t grouped_width(std::uint32_t sum) const;
    // f(a) of an ungrouped bucket, including sorted bits; section II-A.
    [[nodiscard]] std::uint32_t fingerprint_length(std::uint32_t load) const {
        return cell_width(load) + sorted_bits(load);
    }
    // Returns an error that says what is wrong with the shape, if anything is.
    [[nodiscard]] Status check() const;
};

// Stores the shape in an image's header, and reads it back. `lookup.buckets` is left alone.
void store_shape(const DleftShape& shape, sieve_lookup& lookup);
DleftShape shape_of(const sieve_lookup& lookup);

// A decoded bucket. A fingerprint is a value of `length` bits, including sorted bits.
struct DleftBucket {
    std::uint32_t load = 0;
    std::uint32_t length = 0;
    bool overflowed = false; // the load is above shape.top_load()
    bool always = false;     // the bucket matches everything; it then has no fingerprints, and its load is 0
    std::array<std::uint64_t, SIEVE_DLEFT128_TOP_LOAD + SIEVE_DLEFT_ALWAYS> fingerprints{};

    // Sorts the fingerprints and returns those that differ.
    [[nodiscard]] std::span<const std::uint64_t> distinct();
    // The exact probability that a random fingerprint is in the bucket. Equal fingerprints count once.
    [[nodiscard]] double rate() const;
};

// Writes all buckets of a line and ignores the line's old content. `tests[b]` holds the tested halves of the
// hashes in bucket b, in any order; the function sorts them. Error: a group of 64-bit buckets has a bucket
// above the top load; the line has not changed.
Status encode_line(const DleftShape& shape, std::span<const std::span<std::uint64_t>> tests,
                   sieve_line& line);

// Decodes all buckets of a line.
std::vector<DleftBucket> decode_line(const DleftShape& shape, const sieve_line& line);

} // namespace sieve
