// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_listing.hpp"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "libsieve/filters/kinds/exact/exact_ipv6.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"

namespace sieve::exact {

namespace {

using Visit = std::function<void(uint128 address)>;

class Ipv4Lines {
  public:
    Ipv4Lines(const Parts& parts, bool check)
        : exact_(parts.exact), words_(parts.words()), check_(check), lanes_(exact_), inverse_(exact_) {}

    std::string list(std::uint32_t word, const Visit& visit) const {
        const std::uint64_t content = words_[word];
        const auto fault = [word](std::uint32_t lane, const char* what) {
            return fmt::format("word {}, lane {}: {}", word, lane, what);
        };
        if ((content & lanes_.no_lane()) != 0) return fmt::format("word {}: bits that are of no lane", word);
        for (std::uint32_t lane = 0; lane < lanes_.count(); lane++) {
            const std::uint64_t entry = lanes_.get(content, lane);
            if (entry == lanes_.none()) continue;
            if (!lanes_.is_content(entry)) return fault(lane, "an entry beyond the range of remainders");
            const Key key = lanes_.key_of(word, entry);
            const std::uint32_t permuted = permuted_of(exact_, key);
            const sieve_exact_place at = sieve_exact_locate(&exact_, permuted);
            if (at.first != key.first || at.rest != key.rest)
                return fault(lane, "an entry that no address has");
            if (check_ && has_copy(word, entry)) return fault(lane, "a second copy of an address");
            visit(sieve_v4_mapped(inverse_.address_of(permuted)));
        }
        return {};
    }

  private:
    // Of two copies in different words, the one in the key's second word is found.
    [[nodiscard]] bool has_copy(std::uint32_t word, std::uint64_t entry) const {
        if (std::popcount(lanes_.equal(words_[word], entry)) > 1) return true;
        return lanes_.is_second(entry) &&
               lanes_.equal(words_[lanes_.other_word(word, entry)], lanes_.other_content(entry)) != 0;
    }

    const sieve_exact& exact_;
    const __u64* words_;
    bool check_;
    Lanes lanes_;
    Inverse inverse_;
};

// The index of the line, of those of the IPv6 part, is `at`.
std::string list_ipv6(const Parts& parts, std::uint32_t at, bool check, const Visit& visit) {
    const std::span<const sieve_line> lines = parts.ipv6_lines();
    const auto fault = [at](int place, const char* what) {
        return fmt::format("line {} of the IPv6 part, place {}: {}", at, place, what);
    };
    for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) {
        const uint128 address = address_at(lines[at], place);
        if (address == no_address) continue;
        if (is_ipv4(address)) return fault(place, "an address of IPv4");
        const sieve_exact_lines should = lines_of(parts.ipv6, address);
        if (should.first != at && should.second != at)
            return fault(place, "an address that belongs elsewhere");
        const auto is_it = [&](const sieve_line& line, int first) {
            for (int other = first; other < SIEVE_EXACT_IPV6_WAYS; other++)
                if (address_at(line, other) == address) return true;
            return false;
        };
        if (check && (is_it(lines[at], place + 1) || (should.first != at && is_it(lines[should.first], 0))))
            return fault(place, "a second copy of an address");
        visit(address);
    }
    return {};
}

} // namespace

Parts Parts::of(const sieve_lookup& lookup, std::span<const sieve_line> filter) {
    return {*sieve_exact_of(&lookup), reinterpret_cast<const sieve_exact_ipv6&>(filter.front()), filter};
}

std::string parts_fault(const Parts& parts) {
    const sieve_exact_ipv6& ipv6 = parts.ipv6;
    const std::uint64_t expected = parts.exact.lines - sieve_exact_ipv6_line(&parts.exact);
    if (ipv6.lines != expected)
        return fmt::format("{} lines of IPv6 addresses, expected {}", ipv6.lines, expected);
    if (ipv6.reserved0 != 0 || std::any_of(std::begin(ipv6.reserved), std::end(ipv6.reserved),
                                           [](std::uint64_t word) { return word != 0; }))
        return "reserved bytes that are not zero in the filter's first line";
    if (ipv6.lines == 0 && (ipv6.hash_key[0] | ipv6.hash_key[1]) != 0)
        return "secrets of an IPv6 part that has no lines";
    return {};
}

std::string list_lines(const Parts& parts, std::uint64_t first, std::uint64_t last, bool check,
                       const Visit& visit) {
    const std::uint64_t ipv6 = sieve_exact_ipv6_line(&parts.exact);
    const Ipv4Lines ipv4(parts, check);
    for (std::uint64_t line = std::max<std::uint64_t>(first, SIEVE_EXACT_IPV4_LINE); line < last; line++) {
        if (line >= ipv6) {
            if (std::string fault = list_ipv6(parts, static_cast<std::uint32_t>(line - ipv6), check, visit);
                !fault.empty())
                return fault;
            continue;
        }
        const auto word = static_cast<std::uint32_t>((line - SIEVE_EXACT_IPV4_LINE) * SIEVE_LINE_WORDS);
        for (std::uint32_t i = 0; i < SIEVE_LINE_WORDS; i++)
            if (std::string fault = ipv4.list(word + i, visit); !fault.empty()) return fault;
    }
    return {};
}

} // namespace sieve::exact
