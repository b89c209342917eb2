// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What an image says about itself before its filter: whether that can be true.
#pragma once

#include <cstdint>
#include <string>

#include <sieve/image.h>

namespace sieve {

// The lines before the filter's own, as they stand in the file.
struct ImageHeader {
    sieve_lookup lookup;
    sieve_probes probes;
    sieve_file file;
};
static_assert(sizeof(ImageHeader) == SIEVE_FIRST_LINE * sizeof(sieve_line), "no padding");

// What is wrong with a header, every field held against all others; empty if nothing is. A header without a
// fault asks for file.lines lines, and whoever has them can use the image in any way. The checksum and the
// content of the other lines are not looked at.
[[nodiscard]] std::string header_fault(const ImageHeader& header);

// What is wrong with a witness of a set of that header; empty if nothing is.
[[nodiscard]] std::string witness_fault(const sieve_witness& witness, const sieve_lookup& lookup);

// The doubles that sieve_file keeps as bits.
[[nodiscard]] double rate_from_bits(std::uint64_t bits);
[[nodiscard]] std::uint64_t rate_to_bits(double rate);

// The label, for people: where the keys came from, without bytes that a terminal obeys.
[[nodiscard]] std::string label_text(const sieve_file& file);

} // namespace sieve
