// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Checks whether what an image's header says can be true.
#pragma once

#include <cstdint>
#include <string>

#include <sieve/image.h>

namespace sieve {

class Kinds;

// The lines before the filter's own lines, as in the file.
struct ImageHeader {
    sieve_lookup lookup;
    sieve_probes probes;
    sieve_file file;
};
static_assert(sizeof(ImageHeader) == SIEVE_FIRST_LINE * sizeof(sieve_line), "no padding");

// Says what is wrong with a header of one of these kinds; empty if nothing is. Checks every field against all
// others. A header without a fault asks for file.lines lines, and a process that has these lines can use the
// image in any way. The function looks neither at the checksum nor at the content of the other lines.
[[nodiscard]] std::string header_fault(const ImageHeader& header, const Kinds& kinds);

// Says what is wrong with a witness under this header; empty if nothing is.
[[nodiscard]] std::string witness_fault(const sieve_witness& witness, const sieve_lookup& lookup);

// Decodes a double that sieve_file stores as bits.
[[nodiscard]] double rate_from_bits(std::uint64_t bits);
[[nodiscard]] std::uint64_t rate_to_bits(double rate);

// The label for people (the names of the feeds), without the bytes that a terminal obeys.
[[nodiscard]] std::string label_text(const sieve_file& file);

} // namespace sieve
