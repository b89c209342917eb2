// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/safety/guards.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/analysis/binomial.hpp"
#include "libsieve/build/measure.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/address_key.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/util/random/chance.hpp"
#include "libsieve/util/random/splitmix64.hpp"
#include "libsieve/util/text/name_some.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

std::string text_of(uint128 address) {
    return format_address(static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address));
}

constexpr const char* family_names[SIEVE_FAMILIES] = {"IPv4", "IPv6"};
static_assert(SIEVE_FAMILY_V4 == 0 && SIEVE_FAMILY_V6 == 1);

double share_of_family(double addresses, int family) {
    return std::ldexp(addresses, family == SIEVE_FAMILY_V4 ? -32 : -128);
}

double count_of(const AddressRange& range) {
    return static_cast<double>(range.last - range.first) + 1;
}

bool overlaps(const std::vector<AddressRange>& ranges, const AddressRange& other) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), other.last,
                         [](uint128 address, const AddressRange& range) { return address < range.first; });
    return after != ranges.begin() && std::prev(after)->last >= other.first;
}

bool overlaps(const AddressSet& set, const AddressRange& other) {
    return overlaps(set.members[family_of(other)], other);
}

std::string raise(const SetConfiguration& set, std::string_view key) {
    return fmt::format("if it is meant, change {} in [set.{}.guards]", key, set.name);
}

std::string count_text(double count) {
    return fmt::format("{:.{}g}", count, count < 1e15 ? 15 : 3);
}

// What a list is counted in.
struct Unit {
    std::string one;
    std::string many;
};

// "1 entry", "1234 IPv4 addresses", or "3.4e+38 IPv6 addresses".
std::string count_text(double count, const Unit& unit) {
    return count_text(count) + " " + (count == 1 ? unit.one : unit.many);
}

// Whether so much may follow so much. Up to `few`, shares mean nothing.
std::optional<Refusal> check_change(const SetConfiguration& set, double now, double before, double few,
                                    const Unit& unit) {
    if (before >= few && now < before * (1 - set.guards.most_shrink))
        return Refusal{Guard::shrink,
                       fmt::format("set {}: the new list has {}, the one in force has {}: it lost "
                                   "{:.1f}%, and most-shrink is {:g}%; {}",
                                   set.name, count_text(now, unit), count_text(before),
                                   100 * (1 - now / before), 100 * set.guards.most_shrink,
                                   raise(set, "most-shrink"))};
    if (now > std::max(before, few) * set.guards.most_growth)
        return Refusal{Guard::growth,
                       fmt::format("set {}: the new list has {}, the one in force has {}: {:.1f} "
                                   "times as many, and most-growth is {:g}; {}",
                                   set.name, count_text(now, unit), count_text(before),
                                   now / std::max(before, 1.0), set.guards.most_growth,
                                   raise(set, "most-growth"))};
    return std::nullopt;
}

std::optional<Refusal> check_coverage(const SetConfiguration& set, const Extent& extent) {
    constexpr const char* keys[SIEVE_FAMILIES] = {"most-ipv4", "most-ipv6"};
    const double most[SIEVE_FAMILIES] = {set.guards.most_ipv4, set.guards.most_ipv6};
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        const double share = share_of_family(extent.addresses[family], family);
        if (share > most[family])
            return Refusal{
                Guard::coverage,
                fmt::format("set {}: the list covers {:.3g}% of all {} addresses, and {} is {:g}%; {}",
                            set.name, 100 * share, family_names[family], keys[family], 100 * most[family],
                            raise(set, keys[family]))};
    }
    return std::nullopt;
}

// Whether the set would take the packets that this host exchanges with the address: those that meet the set's
// condition, whatever is not known of them.
bool would_take(const SetConfiguration& set, const HostAddress& host) {
    if (set.condition.fields == 0) return true;
    const bool comes_in = set.feed.fields == SIEVE_FIELD_SRC;
    return std::ranges::any_of(
        control::lockout_questions({&host, 1}, host.interface,
                                   comes_in ? kernel::HookPoint::xdp : kernel::HookPoint::egress),
        [&](const control::LockoutQuestion& question) {
            return is_met(set.condition, question) == control::Met::yes;
        });
}

// Those of the protected ranges that these ranges meet.
std::vector<ProtectedRange> met_by(const AddressSet& ranges, const SetConfiguration& set,
                                   const Protection& protection) {
    std::vector<ProtectedRange> met = protected_ranges(set, protection);
    std::erase_if(met, [&](const ProtectedRange& one) { return !overlaps(ranges, one.range); });
    return met;
}

std::optional<Refusal> check_hosts(const SetConfiguration& set, const AddressSet& ranges,
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

// The pieces of the filter that are protected, for a message: at least one of each protected range that it
// reaches into.
class ProtectedPieces {
  public:
    explicit ProtectedPieces(const std::vector<ProtectedRange>& all) {
        std::vector<AddressRange> ranges;
        for (const ProtectedRange& one : all) ranges.push_back(one.range);
        untouched_ = ranges;
        all_ = address_set_of(std::move(ranges));
    }
    void add(const AddressRange& range) {
        if (!overlaps(all_, range)) return;
        std::erase_if(untouched_, [&](const AddressRange& one) {
            const AddressRange piece{std::max(one.first, range.first), std::min(one.last, range.last)};
            if (piece.first > piece.last || family_of(one) != family_of(range)) return false;
            touched_.push_back(piece);
            return true;
        });
    }
    [[nodiscard]] AddressSet take() { return address_set_of(std::move(touched_)); }

  private:
    AddressSet all_;
    std::vector<AddressRange> untouched_;
    std::vector<AddressRange> touched_;
};

// An image that lists its addresses. Nothing: it does not.
std::optional<Extent> list_addresses(const Image& image,
                                     const std::function<void(const AddressRange&)>& visit) {
    const ExactKind* const kind = kind_of(image.lookup()).exact();
    if (kind == nullptr) return std::nullopt;
    Extent extent;
    const Status listed =
        kind->for_each_range(image.lookup(), image.filter(), [&](const AddressRange& range) {
            extent.addresses[family_of(range)] += count_of(range);
            extent.ranges++;
            if (visit) visit(range);
        });
    return listed ? std::optional(extent) : std::nullopt;
}

// How many addresses an image that cannot list them is asked about, of each family and of each prefix.
constexpr std::uint64_t questions = 1U << 16;

std::uint64_t count_matches(const Image& image, const AddressRange& range, std::uint64_t asked) {
    const uint128 step = (range.last - range.first) / asked + 1;
    std::uint64_t matches = 0;
    for (std::uint64_t i = 0; i < asked; i++) {
        const uint128 address = range.first + step * i;
        if (address > range.last || address < range.first) break;
        if (image.contains(key_of_address(address, image.lookup().fields))) matches++;
    }
    return matches;
}

// Of addresses at random, which whoever made the image cannot foresee.
Extent estimate_extent(const Image& image) {
    SplitMix64 random(static_cast<std::uint64_t>(std::ldexp(chance(), 53)));
    Extent extent;
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        std::uint64_t matches = 0;
        for (std::uint64_t i = 0; i < questions; i++) {
            const std::uint64_t upper = random();
            const std::uint64_t lower = random();
            const uint128 address =
                family == SIEVE_FAMILY_V4 ? all_ipv4.first + (lower >> 32) : address_number(upper, lower);
            if (image.contains(key_of_address(address, image.lookup().fields))) matches++;
        }
        extent.addresses[family] =
            std::ldexp(static_cast<double>(matches) / questions, family == SIEVE_FAMILY_V4 ? 32 : 128);
    }
    return extent;
}

// What the image matches of the protected ranges, as far as a filter can be asked. A match with a single
// address counts, even by mistake. Of a prefix, more must match than false positives explain.
AddressSet matched_of(const Image& image, const std::vector<ProtectedRange>& ranges) {
    std::vector<AddressRange> matched;
    const double rate = expected_fpr(image);
    for (const ProtectedRange& one : ranges) {
        const AddressRange& range = one.range;
        const uint128 span = range.last - range.first;
        const std::uint64_t asked = span < questions ? static_cast<std::uint64_t>(span) + 1 : questions;
        const std::uint64_t matches = count_matches(image, range, asked);
        const double expected = rate * static_cast<double>(asked);
        if (matches > 0 && (asked == 1 || (static_cast<double>(matches) > expected &&
                                           !analysis::fits_rate(matches, asked, rate))))
            matched.push_back(range);
    }
    return address_set_of(std::move(matched));
}

// A filter that cannot list what it holds.
std::optional<Refusal> check_filter(const SetConfiguration& set, const Image& image,
                                    const Protection& protection, Accepted accepted) {
    if (!guards_addresses(set)) return std::nullopt;
    if (accepted == Accepted::no)
        if (auto refusal = check_coverage(set, estimate_extent(image))) return refusal;
    if (!protection.takes_packets) return std::nullopt;
    return check_hosts(set, matched_of(image, protected_ranges(set, protection)), protection);
}

} // namespace

Extent extent_of(const AddressSet& addresses) {
    Extent extent;
    extent.ranges = addresses.ranges();
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        for (const AddressRange& range : addresses.members[family])
            extent.addresses[family] += count_of(range);
    return extent;
}

std::optional<Extent> extent_of(const Image& image) {
    return list_addresses(image, {});
}

AddressSet addresses_of(const Feed& list) {
    std::vector<AddressRange> all = list.ranges;
    all.reserve(list.ranges.size() + list.keys.size());
    for (std::size_t i = 0; i < list.keys.size(); i++) {
        const uint128 address = address_of_key(list.keys.at(i), list.keys.fields());
        all.push_back({address, address});
    }
    return address_set_of(std::move(all));
}

ListSize size_of(const SetConfiguration& set, const Feed& list) {
    ListSize size{.entries = list.entries()};
    if (guards_addresses(set)) size.extent = extent_of(addresses_of(list));
    return size;
}

ListSize size_of(const Image& image) {
    const std::optional<Extent> extent = extent_of(image);
    return {.entries = extent ? extent->ranges : image.file().keys, .image = true, .extent = extent};
}

Protection protection_of(const Configuration& configuration, const SetConfiguration& set,
                         std::vector<HostAddress> host) {
    Protection protection{.takes_packets = takes_packets(configuration, set),
                          .passes_packets = passes_packets(configuration, set),
                          .host = std::move(host),
                          .listed = {}};
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

std::optional<Refusal> check_size(const SetConfiguration& set, const ListSize& now, const ListSize& before) {
    // The entries of a list that was written by people do not compare with the ranges that an image holds.
    const bool as_ranges = now.image != before.image && now.extent && before.extent;
    if (auto refusal =
            as_ranges
                ? check_change(set, static_cast<double>(now.extent->ranges),
                               static_cast<double>(before.extent->ranges), small_list, {"range", "ranges"})
                : check_change(set, static_cast<double>(now.entries), static_cast<double>(before.entries),
                               small_list, {"entry", "entries"}))
        return refusal;
    if (!now.extent || !before.extent) return std::nullopt;
    const FewAddresses& few = now.image || before.image ? few_of_images : few_of_lists;
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        if (auto refusal = check_change(set, now.extent->addresses[family], before.extent->addresses[family],
                                        few.of_family[family],
                                        {fmt::format("{} address", family_names[family]),
                                         fmt::format("{} addresses", family_names[family])}))
            return refusal;
    return std::nullopt;
}

std::vector<ProtectedRange> protected_ranges(const SetConfiguration& set, const Protection& protection) {
    std::vector<ProtectedRange> ranges;
    if (!protection.takes_packets || !guards_addresses(set)) return ranges;
    if (set.guards.protect_host)
        for (const HostAddress& host : protection.host)
            if (would_take(set, host))
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
    std::vector<ProtectedRange> met = met_by(addresses_of(list), set, protection);
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
    if (!set.feed.except.empty())
        sources +=
            fmt::format(", or every entry of the list is an exception ({})", printable(set.feed.except));
    return {Guard::empty,
            fmt::format("set {}: its list is empty: no entry in {}; put one there, or {}", set.name, sources,
                        guards_addresses(set)
                            ? fmt::format("if it may be empty, set empty = true in [set.{}]", set.name)
                            : std::string("take the set out of the configuration"))};
}

std::optional<Refusal> check_list(const SetConfiguration& set, const Feed& list,
                                  const std::optional<ListSize>& before, const Protection& protection,
                                  Accepted accepted) {
    ListSize now{.entries = list.entries()};
    if (accepted == Accepted::no && now.entries == 0 && !set.empty) return empty_list(set);
    AddressSet addresses;
    if (guards_addresses(set)) {
        addresses = addresses_of(list);
        now.extent = extent_of(addresses);
    }
    if (accepted == Accepted::no) {
        if (before)
            if (std::optional<Refusal> refusal = check_size(set, now, *before)) return refusal;
        if (now.extent)
            if (std::optional<Refusal> refusal = check_coverage(set, *now.extent)) return refusal;
    }
    return now.extent && protection.takes_packets ? check_hosts(set, addresses, protection) : std::nullopt;
}

std::optional<Refusal> check_image(const SetConfiguration& set, const Image& image,
                                   const std::optional<ListSize>& before, const Protection& protection,
                                   bool trusted, Accepted accepted) {
    const bool asked = accepted == Accepted::no;
    ProtectedPieces pieces(protected_ranges(set, protection));
    const std::optional<Extent> extent =
        list_addresses(image, [&](const AddressRange& range) { pieces.add(range); });
    if (asked && !extent && !trusted && !set.guards.unchecked_images)
        return Refusal{
            Guard::coverage,
            fmt::format("set {}: an image of kind {} does not say what it covers, so no guard can judge it; "
                        "expected a list, or an image of an exact kind; to take it all the same, set "
                        "unchecked-images = true in [set.{}.guards]",
                        set.name, kind_of(image.lookup()).facts().name, set.name)};
    if (asked && extent && extent->ranges == 0) return empty_list(set);
    const ListSize now{
        .entries = extent ? extent->ranges : image.file().keys, .image = true, .extent = extent};
    if (asked && before)
        if (std::optional<Refusal> refusal = check_size(set, now, *before)) return refusal;
    if (!extent) return check_filter(set, image, protection, accepted);
    if (asked)
        if (std::optional<Refusal> refusal = check_coverage(set, *extent)) return refusal;
    return protection.takes_packets ? check_hosts(set, pieces.take(), protection) : std::nullopt;
}

std::vector<uint128> protected_addresses(const SetConfiguration& set, const Protection& protection) {
    std::vector<uint128> addresses;
    for (const ProtectedRange& one : protected_ranges(set, protection))
        if (one.range.first == one.range.last) addresses.push_back(one.range.first);
    return addresses;
}

bool matches_any(const Image& image, std::span<const uint128> addresses) {
    return std::any_of(addresses.begin(), addresses.end(), [&](uint128 address) {
        return image.contains(key_of_address(address, image.lookup().fields));
    });
}

} // namespace sieve::service
