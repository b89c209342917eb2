// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind of filter if nobody names one, and how much memory is spent on having none.
#pragma once

#include <cstdint>
#include <optional>

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

/// What the size of a filter follows from. At most one of the two is given.
struct SizeWish {
    std::optional<double> fpr{};
    std::optional<double> bits_per_key{};
};

/// The kind that plans recommend: of those that take all chosen options, that are made for the rate that is
/// wanted, or that is possible with so many bits, and that touch at most most_lines_recommended lines, the
/// one that wastes the fewest bits. At equal size this is the most accurate kind, at equal rate the smallest.
/// If none touches so few lines, the one that touches the fewest. If no kind takes all options, the one that
/// takes the most, whose own check says what is wrong. Never an exact kind, since the choice does not see
/// what the keys are made of.
[[nodiscard]] const FilterKind& choose_kind(const KindOptions& options, const SizeWish& size = {});

/// Single addresses are kept exactly as long as that takes no more memory than this: 2 * 10^8 IPv4 addresses,
/// or 1.6 * 10^7 IPv6 addresses, which take eight times the memory of a filter. A swap needs it twice, and
/// the kernel does not give map memory back to anybody who is short of it.
inline constexpr std::uint64_t most_bytes_of_exact = std::uint64_t{256} << 20;

/// What the lines of kind `exact` take for so many addresses.
[[nodiscard]] std::uint64_t bytes_of_exact(std::uint64_t ipv4, std::uint64_t ipv6);

} // namespace sieve
