// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/guards.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/core.h>

#include "libsieve/feeds/address_text.hpp"
#include "libsieve/feeds/entry.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/util/name_some.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

sieve_key key_of(uint128 address, std::uint32_t fields) {
    sieve_key key{};
    key.word[sieve_address_word(fields)] = static_cast<std::uint64_t>(address >> 64);
    key.word[sieve_address_word(fields) + 1] = static_cast<std::uint64_t>(address);
    return key;
}

uint128 address_of(const sieve_key& key, std::uint32_t fields) {
    const int word = sieve_address_word(fields);
    return address_number(key.word[word], key.word[word + 1]);
}

std::string text_of(uint128 address) {
    return format_address(static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address));
}

// All addresses of the list: disjoint and rising.
std::vector<AddressRange> merged(const Feed& list) {
    std::vector<AddressRange> all = list.ranges;
    all.reserve(list.ranges.size() + list.keys.size());
    for (std::size_t i = 0; i < list.keys.size(); i++) {
        const uint128 address = address_of(list.keys.at(i), list.keys.fields());
        all.push_back({address, address});
    }
    std::sort(all.begin(), all.end(),
              [](const AddressRange& a, const AddressRange& b) { return a.first < b.first; });
    std::vector<AddressRange> out;
    for (const AddressRange& range : all) {
        if (!out.empty() && range.first <= out.back().last)
            out.back().last = std::max(out.back().last, range.last);
        else
            out.push_back(range);
    }
    return out;
}

struct Coverage {
    double ipv4 = 0; // shares of the family's addresses
    double ipv6 = 0;
};

Coverage coverage_of(const std::vector<AddressRange>& ranges) {
    Coverage coverage;
    for (const AddressRange& range : ranges) {
        const double addresses = static_cast<double>(range.last - range.first) + 1;
        if (is_ipv4(range.first))
            coverage.ipv4 += std::ldexp(addresses, -32);
        else
            coverage.ipv6 += std::ldexp(addresses, -128);
    }
    return coverage;
}

bool overlaps(const std::vector<AddressRange>& ranges, const AddressRange& other) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), other.last,
                         [](uint128 address, const AddressRange& range) { return address < range.first; });
    return after != ranges.begin() && std::prev(after)->last >= other.first;
}

std::string raise(const SetConfiguration& set, std::string_view key) {
    return fmt::format("if it is meant, change {} in [set.{}.guards]", key, set.name);
}

std::optional<Refusal> check_size(const SetConfiguration& set, std::uint64_t now,
                                  std::optional<std::uint64_t> before) {
    if (!before) return std::nullopt;
    const auto was = static_cast<double>(*before);
    const auto is = static_cast<double>(now);
    if (*before >= small_list && is < was * (1 - set.guards.most_shrink))
        return Refusal{Guard::shrink,
                       fmt::format("set {}: the new list has {} entries, the one in force has {}: it lost "
                                   "{:.1f}%, and most-shrink is {:g}%; {}",
                                   set.name, now, *before, 100 * (1 - is / was), 100 * set.guards.most_shrink,
                                   raise(set, "most-shrink"))};
    if (is > std::max(was, static_cast<double>(small_list)) * set.guards.most_growth)
        return Refusal{Guard::growth,
                       fmt::format("set {}: the new list has {} entries, the one in force has {}: {:.1f} "
                                   "times as many, and most-growth is {:g}; {}",
                                   set.name, now, *before, is / std::max(was, 1.0), set.guards.most_growth,
                                   raise(set, "most-growth"))};
    return std::nullopt;
}

std::optional<Refusal> check_coverage(const SetConfiguration& set, const std::vector<AddressRange>& ranges) {
    const Coverage covered = coverage_of(ranges);
    const auto refusal = [&](const char* family, double share, double most, const char* key) {
        return Refusal{Guard::coverage,
                       fmt::format("set {}: the list covers {:.3g}% of all {} addresses, and {} is {:g}%; {}",
                                   set.name, 100 * share, family, key, 100 * most, raise(set, key))};
    };
    if (covered.ipv4 > set.guards.most_ipv4)
        return refusal("IPv4", covered.ipv4, set.guards.most_ipv4, "most-ipv4");
    if (covered.ipv6 > set.guards.most_ipv6)
        return refusal("IPv6", covered.ipv6, set.guards.most_ipv6, "most-ipv6");
    return std::nullopt;
}

// Those of the protected ranges that these ranges meet.
std::vector<ProtectedRange> met_by(const std::vector<AddressRange>& ranges, const SetConfiguration& set,
                                   const Protection& protection) {
    std::vector<ProtectedRange> met = protected_ranges(set, protection);
    std::erase_if(met, [&](const ProtectedRange& one) { return !overlaps(ranges, one.range); });
    return met;
}

std::optional<Refusal> check_hosts(const SetConfiguration& set, const std::vector<AddressRange>& ranges,
                                   const Protection& protection) {
    const std::vector<ProtectedRange> met = met_by(ranges, set, protection);
    if (met.empty()) return std::nullopt;
    std::vector<std::string> names;
    std::set<ProtectedBy> by;
    for (const ProtectedRange& one : met) {
        names.push_back(one.by == ProtectedBy::host
                            ? fmt::format("{}, {}", one.text, one.what)
                            : fmt::format("{}, or a part of it, which is to be protected", one.text));
        by.insert(one.by);
    }
    const char* const them = met.size() == 1 ? "it" : "them";
    std::string advice = fmt::format("take {} out of the list", them);
    if (!set.guards.skip_own)
        advice +=
            fmt::format(", leave {} out with own-addresses = \"skip\" in [set.{}.guards]", them, set.name);
    if (by.contains(ProtectedBy::host))
        advice += fmt::format(", or set protect-host = false in [set.{}.guards]", set.name);
    if (by.contains(ProtectedBy::set))
        advice += fmt::format(", or take {} out of protect in [set.{}.guards]", them, set.name);
    if (by.contains(ProtectedBy::interface))
        advice += fmt::format(", or take {} out of protect in the [[interface]]", them);
    return Refusal{Guard::protection,
                   fmt::format("set {}: the list holds {}; {}", set.name, name_some(names), advice)};
}

} // namespace

Protection protection_of(const Configuration& configuration, const SetConfiguration& set,
                         std::vector<HostAddress> host) {
    Protection protection{
        .takes_packets = takes_packets(configuration, set), .host = std::move(host), .listed = {}};
    for (const InterfaceConfiguration& entry : configuration.interfaces)
        if (std::find(entry.sets.begin(), entry.sets.end(), set.name) != entry.sets.end())
            protection.listed.insert(protection.listed.end(), entry.protect.begin(), entry.protect.end());
    return protection;
}

const char* guard_name(Guard guard) {
    switch (guard) {
    case Guard::empty:
        return "empty";
    case Guard::shrink:
        return "shrink";
    case Guard::growth:
        return "growth";
    case Guard::coverage:
        return "coverage";
    case Guard::protection:
        return "protection";
    case Guard::lockout:
        return "lockout";
    }
    return "unknown";
}

std::optional<Refusal> check_entries(const SetConfiguration& set, std::uint64_t entries,
                                     std::uint64_t entries_before) {
    return check_size(set, entries, entries_before);
}

std::vector<ProtectedRange> protected_ranges(const SetConfiguration& set, const Protection& protection) {
    std::vector<ProtectedRange> ranges;
    if (!protection.takes_packets || !guards_addresses(set)) return ranges;
    if (set.guards.protect_host)
        for (const HostAddress& host : protection.host)
            ranges.push_back(
                {{host.address, host.address}, host.what, text_of(host.address), ProtectedBy::host});
    for (const std::string& text : set.guards.protect)
        ranges.push_back({protected_range(text), "in the list protect", printable(text), ProtectedBy::set});
    for (const std::string& text : protection.listed)
        ranges.push_back({protected_range(text), "in the list protect of an interface", printable(text),
                          ProtectedBy::interface});
    return ranges;
}

Result<std::vector<ProtectedRange>> leave_out_protected(const SetConfiguration& set, Feed& list,
                                                        const Protection& protection) {
    std::vector<ProtectedRange> met = met_by(merged(list), set, protection);
    if (met.empty()) return met;
    Members taken(list.keys.fields());
    for (const ProtectedRange& one : met) taken.ranges.push_back(one.range);
    Members rest(list.keys, list.ranges);
    SIEVE_TRY(subtract(rest, taken));
    if (rest.empty()) return std::vector<ProtectedRange>();
    list.keys = std::move(rest.keys);
    list.ranges = std::move(rest.ranges);
    return met;
}

Refusal empty_list(const SetConfiguration& set) {
    std::string sources;
    for (const SourceSpec& source : set.sources)
        sources += (sources.empty() ? "" : ", ") + source_name(source);
    return {Guard::empty, fmt::format("set {}: its list is empty: no entry in {}; put one there, or take the "
                                      "set out of the configuration",
                                      set.name, sources)};
}

bool guards_addresses(const SetConfiguration& set) {
    return entry::is_single_address(set.feed.fields);
}

std::optional<Refusal> check_list(const SetConfiguration& set, const Feed& list,
                                  std::optional<std::uint64_t> entries_before, const Protection& protection) {
    const std::uint64_t entries = list.entries();
    if (entries == 0) return empty_list(set);
    if (std::optional<Refusal> refusal = check_size(set, entries, entries_before)) return refusal;
    if (!guards_addresses(set)) return std::nullopt;
    const std::vector<AddressRange> ranges = merged(list);
    if (std::optional<Refusal> refusal = check_coverage(set, ranges)) return refusal;
    return protection.takes_packets ? check_hosts(set, ranges, protection) : std::nullopt;
}

std::optional<Refusal> check_image(const SetConfiguration& set, const Image& image,
                                   std::optional<std::uint64_t> keys_before, const Protection& protection) {
    if (std::optional<Refusal> refusal = check_size(set, image.file().keys, keys_before)) return refusal;
    if (!guards_addresses(set) || !protection.takes_packets) return std::nullopt;
    const auto matches = [&](uint128 address) {
        return image.contains(key_of(address, image.lookup().fields));
    };
    std::vector<AddressRange> matched;
    for (const uint128 address : protected_addresses(set, protection))
        if (matches(address)) matched.push_back({address, address});
    std::sort(matched.begin(), matched.end(),
              [](const AddressRange& a, const AddressRange& b) { return a.first < b.first; });
    return check_hosts(set, matched, protection);
}

AddressRange protected_range(const std::string& text) {
    const Result<MemberText> member = parse_member(text, SIEVE_FIELD_SRC);
    if (!member) return {};
    const uint128 address = address_of(member->key, SIEVE_FIELD_SRC);
    return member->range.value_or(AddressRange{address, address});
}

std::vector<uint128> protected_addresses(const SetConfiguration& set, const Protection& protection) {
    std::vector<uint128> addresses;
    for (const ProtectedRange& one : protected_ranges(set, protection))
        if (one.range.first == one.range.last) addresses.push_back(one.range.first);
    return addresses;
}

bool matches_any(const Image& image, std::span<const uint128> addresses) {
    return std::any_of(addresses.begin(), addresses.end(), [&](uint128 address) {
        return image.contains(key_of(address, image.lookup().fields));
    });
}

} // namespace sieve::service
