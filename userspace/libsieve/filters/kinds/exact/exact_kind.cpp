// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_kind.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "libsieve/filters/kinds/exact/exact_geometry.hpp"
#include "libsieve/filters/kinds/exact/exact_listing.hpp"
#include "libsieve/filters/kinds/exact/exact_live_table.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/filters/kinds/exact/exact_wide.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve {

constinit const ExactTableKind exact_kind;

namespace {

class ExactTable final : public ExactFilter {
  public:
    explicit ExactTable(exact::Table table) : table_(std::move(table)) {}

    [[nodiscard]] std::uint64_t keys() const override { return table_.keys; }
    [[nodiscard]] HashSum sum() const override { return table_.sum; }
    [[nodiscard]] std::uint64_t lines() const override { return table_.lines.size(); }

    [[nodiscard]] Status describe(sieve_lookup& lookup) const override {
        sieve_exact geometry = table_.geometry;
        geometry.magic = lookup.magic;
        std::memcpy(&lookup, &geometry, sizeof(lookup));
        return {};
    }

    void fill(std::span<sieve_line> lines) const override {
        std::copy(table_.lines.begin(), table_.lines.end(), lines.begin());
    }

  private:
    exact::Table table_;
};

// A list's addresses by family. What the list holds in the form that a table takes is not copied.
struct Split {
    explicit Split(const KeySet& keys) {
        const int word = sieve_address_word(keys.fields());
        keys.for_each(keys.addresses().size(), keys.size(), [&](const sieve_key& key) {
            if (sieve_family(key.word[word], key.word[word + 1]) == SIEVE_FAMILY_V4)
                ipv4.push_back(static_cast<std::uint32_t>(key.word[word + 1]));
            else
                ipv6.push_back(address_number(key.word[word], key.word[word + 1]));
        });
        if (!ipv4.empty()) ipv4.insert(ipv4.begin(), keys.addresses().begin(), keys.addresses().end());
        addresses = {.ipv4 = ipv4.empty() ? keys.addresses() : ipv4, .ipv6 = ipv6};
    }
    Split(const Split&) = delete;
    Split& operator=(const Split&) = delete;

    std::vector<std::uint32_t> ipv4;
    std::vector<uint128> ipv6;
    exact::Addresses addresses;
};

// Judged by the clock that packets read.
bool has_ended(const exact::Parts& parts, std::uint32_t value) {
    return parts.ipv6.meaning == SIEVE_EXACT_ENDS &&
           sieve_exact_ended(value, sieve_exact_unit(&parts.exact, &parts.ipv6, program_now())) != 0;
}

// What keys with marks cannot be.
Status allow_marks(const exact::Addresses& addresses, const Spare& spare) {
    if (spare.lifetimes) return invalid_request("hits: entries that end are not marked");
    for (const uint128 address : addresses.ipv6)
        if (!exact::can_be_marked(address))
            return invalid_request(fmt::format(
                "hits: an address that begins with {:x} is not in use and cannot be marked: expected one "
                "below 6000:: or from e000:: on",
                static_cast<std::uint16_t>(address >> 112)));
    return {};
}

} // namespace

std::string ExactTableKind::geometry_fault(const sieve_lookup& lookup) const {
    return exact::is_wide(lookup.fields) ? exact::wide_fault(lookup) : exact::fault(*sieve_exact_of(&lookup));
}

std::uint64_t ExactTableKind::lines(const sieve_lookup& lookup) const {
    return lookup.buckets;
}

std::string ExactTableKind::geometry(const sieve_lookup& lookup) const {
    if (exact::is_wide(lookup.fields)) return exact::wide_geometry(lookup);
    const sieve_exact& exact = *sieve_exact_of(&lookup);
    std::string text = fmt::format("{} words of {} lanes of {} bits for IPv4", exact.words,
                                   64 / exact::lane_bits(exact), exact::lane_bits(exact));
    if (exact.value_bits > 0) text += fmt::format(", {} of them a value", exact.value_bits);
    if (exact.marks > 0) text += ", one of them a hit mark";
    // Of nine lines, one is of values.
    std::uint32_t ipv6 = exact.lines - sieve_exact_ipv6_line(&exact);
    if (exact.value_bits > 0) ipv6 -= (ipv6 + SIEVE_LINE_WORDS) / (SIEVE_LINE_WORDS + 1);
    if (ipv6 > 0)
        text += fmt::format(", {} {} of {} addresses for IPv6", ipv6, ipv6 == 1 ? "line" : "lines",
                            SIEVE_EXACT_IPV6_WAYS);
    return text;
}

std::string ExactTableKind::parameters(const sieve_lookup& lookup, std::uint64_t) const {
    return exact::is_wide(lookup.fields) ? "exact; no prefixes" : "exact; single addresses only";
}

LinesTouched ExactTableKind::lines_touched(const sieve_lookup& lookup, double) const {
    if (exact::is_wide(lookup.fields)) return exact::wide_lines_touched(lookup);
    return {.non_member = 2, .member = 2};
}

bool ExactTableKind::holds_key(const sieve_lookup& lookup, const sieve_key& key,
                               std::span<const sieve_line> filter) const {
    if (exact::is_wide(lookup.fields)) return exact::wide_holds(lookup, key, filter);
    const sieve_exact& exact = *sieve_exact_of(&lookup);
    const std::uint64_t upper = sieve_address_upper(&key, lookup.fields);
    const std::uint64_t lower = sieve_address_lower(&key, lookup.fields);
    const auto fetch = [&](std::uint32_t line) { return line < filter.size() ? &filter[line] : nullptr; };
    if (exact.value_bits > 0) {
        const exact::Parts parts = exact::Parts::of(lookup, filter);
        const std::optional<std::uint32_t> value = exact::value_in(parts, upper, lower);
        return value && !has_ended(parts, *value);
    }
    if (sieve_family(upper, lower) == SIEVE_FAMILY_V4) {
        const sieve_exact_place at =
            sieve_exact_locate(&exact, sieve_exact_permute(&exact, static_cast<std::uint32_t>(lower)));
        const sieve_line* first = fetch(sieve_exact_line(at.first));
        const sieve_line* second = fetch(sieve_exact_line(at.second));
        return first != nullptr && second != nullptr &&
               sieve_exact_test(&exact, first->word[sieve_exact_index(at.first)],
                                second->word[sieve_exact_index(at.second)], at.rest) != 0;
    }
    const sieve_exact_ipv6& part = exact::Parts::of(lookup, filter).ipv6;
    if (part.lines == 0 || (exact.marks != 0 && sieve_exact_unmarked(upper) != upper)) return false;
    const sieve_exact_lines at = sieve_exact_locate_ipv6(&part, upper, lower);
    const sieve_line* first = fetch(sieve_exact_ipv6_line(&exact) + at.first);
    const sieve_line* second = fetch(sieve_exact_ipv6_line(&exact) + at.second);
    return first != nullptr && second != nullptr &&
           (sieve_exact_test_ipv6(first, upper, lower, exact.marks) |
            sieve_exact_test_ipv6(second, upper, lower, exact.marks)) != 0;
}

// Entries that stand for no address, or for one that is there twice, have no answer: lookups may find the one
// or the other.
Status ExactTableKind::for_each_range(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                      const std::function<void(const AddressRange&)>& visit) const {
    if (exact::is_wide(lookup.fields))
        return bad_input("keys of several fields, which are no ranges of addresses");
    const exact::Parts parts = exact::Parts::of(lookup, filter);
    std::string fault = exact::parts_fault(parts);
    if (fault.empty())
        fault = exact::list_lines(parts, SIEVE_EXACT_IPV4_LINE, filter.size(), true,
                                  [&](uint128 address, std::uint32_t value, bool) {
                                      if (!has_ended(parts, value)) visit({address, address});
                                  });
    if (!fault.empty()) return bad_input(fault);
    return {};
}

Result<std::unique_ptr<ExactFilter>>
ExactTableKind::work_out(const KeySet& keys, const Spare& spare,
                         std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret) const {
    if (exact::is_wide(keys.fields())) {
        if (spare.hits) return invalid_request("hits: a set whose key has several fields marks no entries");
        return exact::work_out_wide(keys, spare.room, secret);
    }
    Split split(keys);
    exact::Addresses& addresses = split.addresses;
    if (spare.hits) SIEVE_TRY(allow_marks(addresses, spare));
    addresses.marks = spare.hits ? 1 : 0;
    // By their shares, but one that is rare today is not without room tomorrow.
    const std::uint64_t least = std::min<std::uint64_t>(spare.room / 16, 256);
    if (!keys.empty())
        addresses.ipv6_room =
            std::clamp(spare.room * addresses.ipv6.size() / keys.size(), least, spare.room - least);
    addresses.ipv4_room = spare.room - addresses.ipv6_room;
    exact::Values values;
    std::vector<std::uint16_t> ipv4_ends, ipv6_ends;
    if (spare.lifetimes) {
        values = exact::ends_for(addresses.ipv4.size() + addresses.ipv4_room, spare.lifetimes->longest,
                                 program_now(), spare.lifetimes->unit);
        const auto no_end = static_cast<std::uint16_t>(exact::no_end(values.bits));
        ipv4_ends.assign(addresses.ipv4.size(), no_end);
        ipv6_ends.assign(addresses.ipv6.size(), no_end);
        addresses.ipv4_values = ipv4_ends;
        addresses.ipv6_values = ipv6_ends;
    }
    SIEVE_ASSIGN(exact::Table table, exact::build_table(addresses, keys.fields(), secret, values));
    return std::make_unique<ExactTable>(std::move(table));
}

std::uint64_t ExactTableKind::lines_for(std::uint64_t ipv4, std::uint64_t ipv6) const {
    return exact::table_lines(ipv4, ipv6);
}

Result<KeySet> ExactTableKind::list(const sieve_lookup& lookup, std::span<const sieve_line> filter) const {
    if (exact::is_wide(lookup.fields)) return exact::list_wide(lookup, filter);
    const exact::Parts parts = exact::Parts::of(lookup, filter);
    if (const std::string fault = exact::parts_fault(parts); !fault.empty()) return bad_input(fault);
    constexpr std::size_t portion = 1U << 12; // lines
    const std::size_t count = (filter.size() + portion - 1) / portion;
    std::vector<KeySet> listed(count, KeySet(lookup.fields));
    std::vector<std::string> faults(count);
    for_each_index(count, [&](std::size_t i) {
        const std::size_t first = i * portion, last = std::min(filter.size(), first + portion);
        KeySet& own = listed[i];
        own.reserve((last - first) * SIEVE_LINE_WORDS * (64 / exact::lane_bits(parts.exact)));
        const int word = sieve_address_word(lookup.fields);
        sieve_key key{};
        faults[i] =
            exact::list_lines(parts, first, last, false, [&](uint128 address, std::uint32_t value, bool) {
                if (has_ended(parts, value)) return;
                if (is_ipv4(address)) return own.add_ipv4(static_cast<std::uint32_t>(address));
                key.word[word] = static_cast<std::uint64_t>(address >> 64);
                key.word[word + 1] = static_cast<std::uint64_t>(address);
                own.add(key);
            });
    });
    KeySet keys(lookup.fields);
    std::size_t all = 0;
    for (const KeySet& one : listed) all += one.size();
    keys.reserve(all);
    for (std::size_t i = 0; i < count; i++) {
        if (!faults[i].empty()) return bad_input(faults[i]);
        keys.append(listed[i]);
    }
    return keys;
}

Status ExactTableKind::for_each_entry(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                      std::uint64_t now, const VisitEntry& visit) const {
    if (exact::is_wide(lookup.fields)) {
        SIEVE_ASSIGN(const KeySet keys, exact::list_wide(lookup, filter));
        keys.for_each(0, keys.size(), [&](const sieve_key& key) { visit(key, never_ends, false); });
        return {};
    }
    const exact::Parts parts = exact::Parts::of(lookup, filter);
    if (const std::string fault = exact::parts_fault(parts); !fault.empty()) return bad_input(fault);
    const exact::Values values = parts.values();
    const int word = sieve_address_word(lookup.fields);
    sieve_key key{};
    const std::string fault = exact::list_lines(
        parts, SIEVE_EXACT_IPV4_LINE, filter.size(), false,
        [&](uint128 address, std::uint32_t value, bool marked) {
            key.word[word] = static_cast<std::uint64_t>(address >> 64);
            key.word[word + 1] = static_cast<std::uint64_t>(address);
            visit(key,
                  values.meaning == SIEVE_EXACT_ENDS ? exact::time_of_end(values, value, now) : never_ends,
                  marked);
        });
    if (!fault.empty()) return bad_input(fault);
    return {};
}

bool ExactTableKind::states_ends(std::uint32_t fields) const {
    return !exact::is_wide(fields);
}

std::uint64_t ExactTableKind::least_delay_of_ends(std::uint64_t longest) const {
    return std::uint64_t{1} << exact::ends_for(0, longest, 0, 0).unit;
}

bool ExactTableKind::has_ends(const sieve_lookup& lookup, std::span<const sieve_line> filter) const {
    return states_ends(lookup.fields) && exact::Parts::of(lookup, filter).ipv6.meaning == SIEVE_EXACT_ENDS;
}

bool ExactTableKind::has_marks(const sieve_lookup& lookup) const {
    return sieve_exact_of(&lookup)->marks != 0;
}

Result<KeySum> ExactTableKind::add_up(const sieve_lookup& lookup, std::span<const sieve_line> filter) const {
    if (exact::is_wide(lookup.fields)) return exact::add_up_wide(lookup, filter);
    if (exact::Parts::of(lookup, filter).ipv6.unsettled != 0)
        return bad_input("a change of its keys that did not come to its end");
    return exact::sum_of_table(lookup, filter);
}

Result<std::unique_ptr<ChangeableTable>>
ExactTableKind::open_table(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines) const {
    if (exact::is_wide(lookup.fields)) return exact::open_wide(lookup, file, lines);
    return exact::LiveTable::open(lookup, file, lines);
}

} // namespace sieve
