// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ranges/ranges_kind.hpp"

#include <array>
#include <limits>

#include <fmt/core.h>

#include <sieve/ranges.h>

#include "libsieve/filters/kinds/ranges/members_of_lines.hpp"
#include "libsieve/filters/kinds/ranges/part_layout.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

constinit const RangesKind ranges_kind;

namespace {

constexpr const char* part_names[SIEVE_RANGES_PARTS] = {"IPv4", "IPv6", "IPv6 beyond /64"};

std::uint64_t lines_of_table(const sieve_lookup& lookup, int part) {
    return (std::uint64_t{sieve_ranges_cells(&lookup, part)} + SIEVE_RANGES_ENTRIES - 1) /
           SIEVE_RANGES_ENTRIES;
}

bool outside(const sieve_lookup& lookup, int part, int bit) {
    return (lookup.hash_key[2 * part] >> bit & 1) != 0;
}

std::string part_fault(const sieve_lookup& lookup, int part) {
    const std::uint64_t cells = sieve_ranges_cells(&lookup, part);
    const std::uint32_t shift = sieve_ranges_shift(&lookup, part);
    const std::uint64_t origin = sieve_ranges_origin(&lookup, part);
    const std::uint64_t last =
        part == SIEVE_RANGES_IPV4 ? 0xffffffff : std::numeric_limits<std::uint64_t>::max();
    if (cells == 0)
        return origin != 0 || shift != 0 ||
                       outside(lookup, part, SIEVE_RANGES_BELOW_BIT) !=
                           outside(lookup, part, SIEVE_RANGES_ABOVE_BIT)
                   ? "a table without cells that is not empty"
                   : "";
    if (shift < SIEVE_RANGES_LEAST_SHIFT || shift > SIEVE_RANGES_MOST_SHIFT)
        return fmt::format("cells of 2^{} numbers, expected 2^{} to 2^{}", shift, SIEVE_RANGES_LEAST_SHIFT,
                           SIEVE_RANGES_MOST_SHIFT);
    if ((origin & ((std::uint64_t{1} << shift) - 1)) != 0) return "a table that begins within a cell";
    if (origin > last || cells - 1 > (last - origin) >> shift)
        return "a table of more cells than there are addresses";
    return {};
}

class RangesFilter final : public ExactFilter {
  public:
    explicit RangesFilter(const AddressSet& members)
        : parts_(ranges::boundaries_of(members)), keys_(members.ranges()) {
        layouts_[SIEVE_RANGES_IPV4] = ranges::layout_of(parts_.ipv4);
        layouts_[SIEVE_RANGES_IPV6] = ranges::layout_of(parts_.ipv6);
        layouts_[SIEVE_RANGES_FINE] = ranges::layout_of(parts_.fine);
    }

    [[nodiscard]] std::uint64_t keys() const override { return keys_; }

    [[nodiscard]] std::uint64_t lines() const override {
        std::uint64_t lines = 0;
        for (const auto& layout : layouts_) lines += layout->table_lines() + layout->body_lines();
        return std::max<std::uint64_t>(lines, 1);
    }

    [[nodiscard]] Status describe(sieve_lookup& lookup) const override {
        if (lines() >= SIEVE_RANGES_MOST_LINES)
            return invalid_request(
                fmt::format("the list takes {} lines of 64 bytes, and a filter of kind ranges has at most {}",
                            lines(), SIEVE_RANGES_MOST_LINES));
        if (parts_.fine.at.size() > most_fine)
            return invalid_request(fmt::format("{} ends of ranges within /64s, kind ranges holds at most {}",
                                               parts_.fine.at.size(), most_fine));
        lookup.kind = SIEVE_KIND_RANGES;
        lookup.choices = 1;
        lookup.hashes = 0;
        lookup.alpha = 0;
        lookup.probes = 1;
        lookup.buckets = static_cast<std::uint32_t>(lines());
        std::uint64_t table = 0;
        for (const auto& layout : layouts_) {
            layout->describe(lookup, table);
            table += layout->table_lines();
        }
        return {};
    }

    void fill(std::span<sieve_line> lines) const override {
        std::uint64_t table = 0;
        std::uint64_t body = 0;
        for (const auto& layout : layouts_) body += layout->table_lines();
        for (const auto& layout : layouts_) {
            layout->fill(lines, table, body);
            table += layout->table_lines();
            body += layout->body_lines();
        }
    }

  private:
    // What a tree of SIEVE_RANGES_DEPTH levels holds, if all are in one cell.
    static constexpr std::uint64_t most_fine = std::uint64_t{1} << (2 * SIEVE_RANGES_DEPTH);
    static_assert(SIEVE_RANGES_WAYS_FINE == 1 << 2);

    ranges::SetBoundaries parts_;
    std::uint64_t keys_;
    std::array<std::unique_ptr<ranges::PartLayout>, SIEVE_RANGES_PARTS> layouts_;
};

/// A filter's lines in memory, for the shared code's fetch.
struct Lines {
    std::span<const sieve_line> all;

    static const sieve_line* fetch(void* lines, __u32 line) {
        const auto& all = static_cast<const Lines*>(lines)->all;
        return line < all.size() ? &all[line] : nullptr;
    }
};

} // namespace

std::string RangesKind::geometry_fault(const sieve_lookup& lookup) const {
    if (lookup.hashes != 0 || lookup.alpha != 0 || lookup.probes != 1)
        return "fields of other kinds in a header of kind ranges";
    if (!sieve_is_one_address(lookup.fields))
        return "a filter of kind ranges whose key is not one address, which alone it compares";
    if (lookup.buckets >= SIEVE_RANGES_MOST_LINES)
        return fmt::format("{} lines, kind ranges has fewer than {}", lookup.buckets,
                           SIEVE_RANGES_MOST_LINES);
    std::uint64_t table = 0;
    for (int part = 0; part < SIEVE_RANGES_PARTS; part++) {
        if (std::string fault = part_fault(lookup, part); !fault.empty())
            return fmt::format("{}: {}", part_names[part], fault);
        if (sieve_ranges_table(&lookup, part) != table)
            return fmt::format("{}: a table that is not where the one before it ends", part_names[part]);
        table += lines_of_table(lookup, part);
    }
    if (table > lookup.buckets)
        return fmt::format("tables of {} lines in a filter of {}", table, lookup.buckets);
    return {};
}

std::uint64_t RangesKind::lines(const sieve_lookup& lookup) const {
    return lookup.buckets;
}

std::string RangesKind::geometry(const sieve_lookup& lookup) const {
    std::string text;
    std::uint64_t lines = lookup.buckets;
    for (int part = 0; part < SIEVE_RANGES_PARTS; part++) {
        lines -= lines_of_table(lookup, part);
        const std::uint32_t cells = sieve_ranges_cells(&lookup, part);
        if (cells == 0) continue;
        const std::uint32_t bits = part == SIEVE_RANGES_IPV4 ? 32 : 64;
        text += fmt::format("{}{} of /{} for {}", text.empty() ? "" : ", ", counted(cells, "cell"),
                            bits - sieve_ranges_shift(&lookup, part), part_names[part]);
    }
    return fmt::format("{}{} of boundaries", text.empty() ? text : text + ", ", counted(lines, "line"));
}

std::string RangesKind::parameters(const sieve_lookup&, std::uint64_t) const {
    return "exact; addresses and prefixes only";
}

LinesTouched RangesKind::lines_touched(const sieve_lookup&, double) const {
    return {.non_member = 2, .member = 2}; // the table's and a leaf; strangers often one, crowded cells more
}

bool RangesKind::holds_key(const sieve_lookup& lookup, const sieve_key& key,
                           std::span<const sieve_line> filter) const {
    Lines lines{filter};
    const std::uint64_t upper = sieve_address_upper(&key, lookup.fields);
    const std::uint64_t lower = sieve_address_lower(&key, lookup.fields);
    const int holds = sieve_ranges_holds(&lookup, upper, lower, Lines::fetch, &lines);
    if (holds != SIEVE_RANGES_ASK_FINE) return holds != 0;
    return sieve_ranges_holds_fine(&lookup, upper, lower, Lines::fetch, &lines) != 0;
}

Status RangesKind::for_each_range(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                  const std::function<void(const AddressRange&)>& visit) const {
    return ranges::visit_members(lookup, filter, visit);
}

Result<std::unique_ptr<ExactFilter>> RangesKind::work_out(const AddressSet& members) const {
    return std::make_unique<RangesFilter>(members);
}

} // namespace sieve
