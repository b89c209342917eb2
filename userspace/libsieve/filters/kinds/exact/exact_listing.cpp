// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_listing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/core.h>

#include "libsieve/filters/kinds/exact/exact_ipv6.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve::exact {

namespace {

constexpr const char* beyond_values = "a value beyond those that there are";

std::uint32_t most_value(const Parts& parts) {
    if (parts.ipv6.meaning == SIEVE_EXACT_SETS) return parts.ipv6.sets - 1U;
    return (1U << parts.exact.value_bits) - 1;
}

// Lists words. Whether there is a second copy of an address, in its other word, is looked up a few addresses
// later: other words are scattered over the table, and so the processor fetches several at a time.
class Ipv4Lines {
  public:
    Ipv4Lines(const Parts& parts, bool check)
        : exact_(parts.exact), words_(parts.words()), check_(check), lanes_(exact_), inverse_(exact_),
          most_value_(most_value(parts)) {}

    std::string list(std::uint32_t word, const Visit& visit) {
        const std::uint64_t content = words_[word];
        if ((content & lanes_.no_lane()) != 0) return fmt::format("word {}: bits that are of no lane", word);
        for (std::uint32_t lane = 0; lane < lanes_.count(); lane++) {
            const std::uint64_t entry = lanes_.get(content, lane);
            const bool marked = (content & lanes_.mark(lane)) != 0;
            if (entry == lanes_.none() && marked) return fault({word, lane}, "a mark of no key");
            if (entry == lanes_.none()) continue;
            if (!lanes_.is_content(entry))
                return fault({word, lane}, "an entry beyond the range of remainders");
            const Key key = lanes_.key_of(word, entry);
            const std::uint32_t permuted = permuted_of(exact_, key);
            const sieve_exact_place at = sieve_exact_locate(&exact_, permuted);
            if (at.first != key.first || at.rest != key.rest)
                return fault({word, lane}, "an entry that no address has");
            if (check_) {
                if (std::popcount(lanes_.equal(content, entry)) > 1) return second_copy({word, lane});
                // Of two copies in different words, the one in the key's second word finds the other one.
                if (lanes_.is_second(entry)) {
                    if (std::string found = check_later({word, lane}, at.first, lanes_.other_content(entry));
                        !found.empty())
                        return found;
                }
            }
            const std::uint32_t value = lanes_.value_of(entry);
            if (value > most_value_) return fault({word, lane}, beyond_values);
            visit(sieve_v4_mapped(inverse_.address_of(permuted)), value, marked);
        }
        return {};
    }

    // To be called after the last word.
    std::string finish() {
        for (const Later& one : later_)
            if (std::string found = look(one); !found.empty()) return found;
        return {};
    }

  private:
    struct Place {
        std::uint32_t word;
        std::uint32_t lane;
    };
    struct Later {
        Place copy{};
        std::uint32_t other = 0;   // word
        std::uint64_t content = 0; // of a first copy there
        bool due = false;
    };

    static std::string fault(Place at, const char* what) {
        return fmt::format("word {}, lane {}: {}", at.word, at.lane, what);
    }
    static std::string second_copy(Place at) { return fault(at, "a second copy of an address"); }

    std::string check_later(Place copy, std::uint32_t other, std::uint64_t content) {
        __builtin_prefetch(&words_[other]);
        const Later before = std::exchange(later_[next_], Later{copy, other, content, true});
        next_ = (next_ + 1) % later_.size();
        return look(before);
    }
    [[nodiscard]] std::string look(const Later& one) const {
        if (!one.due || lanes_.equal(words_[one.other], one.content) == 0) return {};
        return second_copy(one.copy);
    }

    const sieve_exact& exact_;
    const __u64* words_;
    bool check_;
    Lanes lanes_;
    Inverse inverse_;
    std::uint32_t most_value_;
    std::array<Later, 16> later_{};
    std::size_t next_ = 0;
};

// The index of the line, of those of the IPv6 part, is `at`.
std::string list_ipv6(const Parts& parts, std::uint32_t at, bool check, const Visit& visit) {
    const std::span<const sieve_line> lines = parts.ipv6_lines();
    const std::span<const sieve_line> values = parts.ipv6_values();
    const auto fault = [at](int place, const char* what) {
        return fmt::format("line {} of the IPv6 part, place {}: {}", at, place, what);
    };
    const std::uint32_t marks = parts.exact.marks;
    for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) {
        const uint128 address = address_at(lines[at], place, marks);
        const bool marked = marks != 0 && is_marked(lines[at], place);
        const std::uint32_t value = values.empty() ? 0 : value_at(values, at, place);
        if (address == no_address && value != 0) return fault(place, "a value of no address");
        if (address == no_address) continue;
        if (value > most_value(parts)) return fault(place, beyond_values);
        if (is_ipv4(address)) return fault(place, "an address of IPv4");
        const sieve_exact_lines should = lines_of(parts.ipv6, address);
        if (should.first != at && should.second != at)
            return fault(place, "an address that belongs elsewhere");
        const auto is_it = [&](const sieve_line& line, int first) {
            for (int other = first; other < SIEVE_EXACT_IPV6_WAYS; other++)
                if (address_at(line, other, marks) == address) return true;
            return false;
        };
        if (check && (is_it(lines[at], place + 1) || (should.first != at && is_it(lines[should.first], 0))))
            return fault(place, "a second copy of an address");
        visit(address, value, marked);
    }
    return {};
}

// Words of lines of values that belong to no line of addresses. The last line has them, if any has.
std::string rest_of_values(const Parts& parts) {
    const std::uint32_t used = parts.ipv6.lines % SIEVE_LINE_WORDS;
    if (parts.ipv6_values().empty() || used == 0) return {};
    const sieve_line& last = parts.ipv6_values().back();
    if (std::all_of(last.word + used, std::end(last.word), [](std::uint64_t word) { return word == 0; }))
        return {};
    return "the last line of values of the IPv6 part: values of no line of addresses";
}

// What is wrong with what the filter's line 0 says of values.
std::string meaning_fault(const Parts& parts) {
    const sieve_exact_ipv6& line = parts.ipv6;
    const std::uint32_t bits = parts.exact.value_bits;
    if (line.meaning > SIEVE_EXACT_ENDS || (line.meaning == SIEVE_EXACT_PLAIN) != (bits == 0))
        return fmt::format("values of {} bits that mean {}", bits, line.meaning);
    if (line.meaning != SIEVE_EXACT_ENDS && (line.base | line.unit) != 0)
        return "a clock, where no entry ends";
    if (line.meaning == SIEVE_EXACT_SETS) {
        if (line.sets == 0 || line.sets > 1U << bits)
            return fmt::format("values of {} bits that name one of {} sets", bits, line.sets);
        return {};
    }
    if (line.sets != 0) return "a number of sets, where no value names one";
    if (line.meaning == SIEVE_EXACT_PLAIN) return {};
    if (bits < least_bits_of_ends)
        return fmt::format("ends of {} bits, expected {} or more", bits, least_bits_of_ends);
    if (line.unit < least_unit || line.unit > most_unit)
        return fmt::format("units of 2^{} nanoseconds, expected 2^{} to 2^{}", line.unit, least_unit,
                           most_unit);
    return {};
}

} // namespace

Parts Parts::of(const sieve_lookup& lookup, std::span<const sieve_line> filter) {
    return {*sieve_exact_of(&lookup), reinterpret_cast<const sieve_exact_ipv6&>(filter.front()), filter};
}

Values Parts::values() const {
    return {.bits = exact.value_bits,
            .meaning = static_cast<sieve_exact_meaning>(ipv6.meaning),
            .unit = ipv6.unit,
            .base = ipv6.base,
            .sets = ipv6.sets};
}

std::string parts_fault(const Parts& parts) {
    const sieve_exact_ipv6& ipv6 = parts.ipv6;
    const std::uint64_t rest = parts.exact.lines - sieve_exact_ipv6_line(&parts.exact);
    if (const std::uint64_t lines = ipv6.lines + value_lines_for(ipv6.lines, parts.exact.value_bits);
        lines != rest)
        return fmt::format("{} lines of IPv6 addresses take {} lines, expected {}", ipv6.lines, lines, rest);
    if (std::string fault = meaning_fault(parts); !fault.empty()) return fault;
    if (ipv6.reserved0 != 0 || std::any_of(std::begin(ipv6.reserved), std::end(ipv6.reserved),
                                           [](std::uint64_t word) { return word != 0; }))
        return "reserved bytes that are not zero in the filter's first line";
    if (ipv6.lines == 0 && (ipv6.hash_key[0] | ipv6.hash_key[1]) != 0)
        return "secrets of an IPv6 part that has no lines";
    return {};
}

std::optional<std::uint32_t> value_in(const Parts& parts, std::uint64_t upper, std::uint64_t lower) {
    const sieve_exact& exact = parts.exact;
    if (sieve_family(upper, lower) == SIEVE_FAMILY_V4) {
        const sieve_exact_place at =
            sieve_exact_locate(&exact, sieve_exact_permute(&exact, static_cast<std::uint32_t>(lower)));
        const std::uint64_t first = parts.words()[at.first];
        const std::uint64_t second = parts.words()[at.second];
        const sieve_exact_match match = sieve_exact_find(&exact, first, second, at.rest);
        if (match.first != 0) return sieve_exact_lane_value(&exact, first, match.first);
        if (match.second != 0) return sieve_exact_lane_value(&exact, second, match.second);
        return std::nullopt;
    }
    if (parts.ipv6.lines == 0) return std::nullopt;
    const sieve_exact_lines at = sieve_exact_locate_ipv6(&parts.ipv6, upper, lower);
    const std::span<const sieve_line> lines = parts.filter.subspan(sieve_exact_ipv6_line(&exact));
    for (const std::uint32_t line : {at.first, at.second})
        if (sieve_exact_test_ipv6(&lines[line], upper, lower, 0) != 0)
            return sieve_exact_value_ipv6(
                &lines[line],
                lines[sieve_exact_value_line(&parts.ipv6, line)].word[sieve_exact_value_index(line)], upper,
                lower);
    return std::nullopt;
}

std::string list_lines(const Parts& parts, std::uint64_t first, std::uint64_t last, bool check,
                       const Visit& visit) {
    const std::uint64_t ipv6 = sieve_exact_ipv6_line(&parts.exact);
    const std::uint64_t values = ipv6 + parts.ipv6.lines;
    Ipv4Lines ipv4(parts, check);
    for (std::uint64_t line = std::max<std::uint64_t>(first, SIEVE_EXACT_IPV4_LINE); line < last; line++) {
        if (line >= ipv6) {
            if (line >= values) break;
            if (std::string fault = list_ipv6(parts, static_cast<std::uint32_t>(line - ipv6), check, visit);
                !fault.empty())
                return fault;
            continue;
        }
        const auto word = static_cast<std::uint32_t>((line - SIEVE_EXACT_IPV4_LINE) * SIEVE_LINE_WORDS);
        for (std::uint32_t i = 0; i < SIEVE_LINE_WORDS; i++)
            if (std::string fault = ipv4.list(word + i, visit); !fault.empty()) return fault;
    }
    if (std::string fault = ipv4.finish(); !fault.empty()) return fault;
    return last > values ? rest_of_values(parts) : std::string();
}

Result<Entries> entries_of(const Parts& parts) {
    if (const std::string fault = parts_fault(parts); !fault.empty()) return bad_input(fault);
    Entries entries;
    const bool valued = parts.exact.value_bits > 0;
    const std::string fault = list_lines(parts, SIEVE_EXACT_IPV4_LINE, parts.filter.size(), false,
                                         [&](uint128 address, std::uint32_t value, bool) {
                                             const bool ipv4 = is_ipv4(address);
                                             if (ipv4)
                                                 entries.ipv4.push_back(static_cast<std::uint32_t>(address));
                                             else
                                                 entries.ipv6.push_back(address);
                                             if (valued)
                                                 (ipv4 ? entries.ipv4_values : entries.ipv6_values)
                                                     .push_back(static_cast<std::uint16_t>(value));
                                         });
    if (!fault.empty()) return bad_input(fault);
    return entries;
}

Result<KeySum> sum_of_portions(std::size_t count,
                               const std::function<PortionSum(std::size_t portion)>& add_up) {
    std::vector<PortionSum> portions(count);
    for_each_index(count, [&](std::size_t i) { portions[i] = add_up(i); });
    KeySum all;
    for (PortionSum& one : portions) {
        if (!one.fault.empty()) return bad_input(std::move(one.fault));
        all.keys += one.sum.keys;
        all.sum += one.sum.sum;
    }
    return all;
}

Result<KeySum> sum_of_table(const sieve_lookup& lookup, std::span<const sieve_line> filter) {
    constexpr std::size_t portion = 1U << 12;
    const Parts parts = Parts::of(lookup, filter);
    if (std::string fault = parts_fault(parts); !fault.empty()) return bad_input(std::move(fault));
    return sum_of_portions((filter.size() + portion - 1) / portion, [&](std::size_t i) {
        PortionSum one;
        one.fault = list_lines(parts, i * portion, std::min<std::uint64_t>(filter.size(), (i + 1) * portion),
                               true, [&](uint128 address, std::uint32_t, bool) {
                                   one.sum.keys++;
                                   one.sum.sum += sum_of_key(lookup, address);
                               });
        return one;
    });
}

} // namespace sieve::exact
