// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ranges/part_layout.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace sieve::ranges {

namespace {

// How the numbers of a part look, and how a line holds them.
struct Ipv4Form {
    using Number = std::uint32_t;
    static constexpr int part = SIEVE_RANGES_IPV4;
    static constexpr std::size_t ways = SIEVE_RANGES_WAYS_IPV4;
    static constexpr std::uint32_t most_shift = 28; // one line of entries covers all
    static constexpr bool has_bitmaps = true;

    static std::uint64_t word(Number number) { return number; }
    static Number first_of(std::uint64_t word) { return static_cast<Number>(word); }
    static Number last_of(std::uint64_t word) { return static_cast<Number>(word); }
    static void put(sieve_line& line, std::size_t i, Number separator) {
        reinterpret_cast<sieve_ranges_u32*>(line.word)[i] = separator;
    }
};

struct Ipv6Form {
    using Number = std::uint64_t;
    static constexpr int part = SIEVE_RANGES_IPV6;
    static constexpr std::size_t ways = SIEVE_RANGES_WAYS_IPV6;
    static constexpr std::uint32_t most_shift = SIEVE_RANGES_MOST_SHIFT;
    static constexpr bool has_bitmaps = true;

    static std::uint64_t word(Number number) { return number; }
    static Number first_of(std::uint64_t word) { return word; }
    static Number last_of(std::uint64_t word) { return word; }
    static void put(sieve_line& line, std::size_t i, Number separator) { line.word[i] = separator; }
};

struct FineForm {
    using Number = uint128;
    static constexpr int part = SIEVE_RANGES_FINE;
    static constexpr std::size_t ways = SIEVE_RANGES_WAYS_FINE;
    static constexpr std::uint32_t most_shift = SIEVE_RANGES_MOST_SHIFT;
    static constexpr bool has_bitmaps = false; // they would have bits for whole /64s only

    static std::uint64_t word(Number number) { return static_cast<std::uint64_t>(number >> 64); }
    static Number first_of(std::uint64_t word) { return address_number(word, 0); }
    static Number last_of(std::uint64_t word) {
        return address_number(word, std::numeric_limits<std::uint64_t>::max());
    }
    static void put(sieve_line& line, std::size_t i, Number separator) {
        line.word[i] = word(separator);
        line.word[i + ways] = static_cast<std::uint64_t>(separator);
    }
};

// A cell and the boundaries inside it. A boundary at the cell's very beginning is not among them: it is part
// of `inside`.
template <class Number>
struct Cell {
    std::uint64_t first; // word
    std::uint64_t last;  // word
    std::span<const Number> boundaries;
    bool inside; // whether the cell's first number is a member
};

std::uint32_t entry_of(bool inside, std::uint32_t depth, std::uint64_t line) {
    return (inside ? 1U : 0U) | depth << SIEVE_RANGES_DEPTH_SHIFT |
           static_cast<std::uint32_t>(line << SIEVE_RANGES_LINE_SHIFT);
}

// The lines that the table's entries lead to. Counts lines, and writes them if there is memory for them.
template <class Form>
class Body {
    using Number = typename Form::Number;
    static constexpr std::size_t ways = Form::ways;

  public:
    // `lines` is where the first line belongs, null to count only; `first` is its number in the filter.
    Body(std::uint32_t shift, sieve_line* lines, std::uint64_t first)
        : shift_(shift), lines_(lines), first_(first) {}

    [[nodiscard]] std::uint64_t lines() const { return count_; }

    // Adds the cell's lines. Returns its entry.
    std::uint32_t add(const Cell<Number>& cell) {
        const std::size_t count = cell.boundaries.size();
        if (count == 0) return entry_of(cell.inside, 0, 0);
        if (count <= ways) return add_to_leaf(cell);
        if (Form::has_bitmaps && is_coarse(cell)) return add_bitmap(cell);
        return add_tree(cell);
    }

  private:
    // The most by which words of one leaf may differ. Differences must stay below 2^63, a borrow included.
    static constexpr std::uint64_t most_span = std::uint64_t{1} << 62;

    std::uint64_t new_line() { return count_++; }

    // Writes separators for boundaries[begin...), as many as there are and as fit, and fills up the line.
    void write(std::uint64_t line, std::size_t used, const Cell<Number>& cell, std::size_t begin) {
        for (std::size_t i = used; i < ways; i++, begin++)
            Form::put(lines_[line], i,
                      begin < cell.boundaries.size() ? static_cast<Number>(cell.boundaries[begin] - 1)
                                                     : Form::last_of(cell.last));
    }

    std::uint32_t add_to_leaf(const Cell<Number>& cell) {
        const std::size_t count = cell.boundaries.size();
        if (leaf_used_ + count > ways || cell.last - leaf_first_ > most_span) {
            leaf_ = new_line();
            leaf_used_ = 0;
            leaf_first_ = cell.first;
        }
        if (lines_ != nullptr) write(leaf_, leaf_used_, cell, 0);
        // Separators of earlier cells count as well.
        const std::uint32_t entry = entry_of(cell.inside != (leaf_used_ % 2 == 1), 1, first_ + leaf_);
        leaf_used_ += count;
        return entry;
    }

    // Whether a bitmap can hold the cell.
    [[nodiscard]] bool is_coarse(const Cell<Number>& cell) const {
        std::uint64_t bits = 0;
        for (const Number boundary : cell.boundaries) bits |= Form::word(boundary);
        return (bits & ((std::uint64_t{1} << sieve_ranges_grain(shift_)) - 1)) == 0;
    }

    std::uint32_t add_bitmap(const Cell<Number>& cell) {
        const std::uint64_t line = new_line();
        if (lines_ != nullptr) {
            const std::uint32_t grain = sieve_ranges_grain(shift_);
            bool inside = cell.inside;
            auto next = cell.boundaries.begin();
            for (std::uint64_t piece = cell.first >> grain; piece <= cell.last >> grain; piece++) {
                if (next != cell.boundaries.end() && Form::word(*next) >> grain == piece) {
                    inside = !inside;
                    ++next;
                }
                if (inside)
                    lines_[line].word[piece / 64 % SIEVE_LINE_WORDS] |= std::uint64_t{1} << (piece % 64);
            }
        }
        return entry_of(false, SIEVE_RANGES_BITMAP, first_ + line);
    }

    // A static B+ tree, level by level from the root, so that a line's children are neighbours.
    std::uint32_t add_tree(const Cell<Number>& cell) {
        std::vector<std::uint64_t> width{(cell.boundaries.size() + ways - 1) / ways}; // leaves first
        while (width.back() > 1) width.push_back((width.back() + ways - 1) / ways);
        const std::uint64_t root = count_;
        const auto depth = static_cast<std::uint32_t>(width.size());
        std::uint64_t at = root;
        std::uint64_t stride = 1; // boundaries below one line of the level
        for (std::size_t level = 0; level < width.size(); level++) {
            stride *= ways;
            count_ += width[level];
        }
        if (lines_ != nullptr)
            for (std::size_t level = width.size(); level-- > 0; stride /= ways) {
                const std::uint64_t children = at + width[level];
                for (std::uint64_t i = 0; i < width[level]; i++)
                    if (level == 0)
                        write(at + i, 0, cell, i * ways);
                    else
                        write_inner(at + i, cell, i * stride, stride / ways, first_ + children + i * ways);
                at = children;
            }
        return entry_of(cell.inside, depth, first_ + root);
    }

    // A line with children of `stride` boundaries each, from boundary `begin` on.
    void write_inner(std::uint64_t line, const Cell<Number>& cell, std::uint64_t begin, std::uint64_t stride,
                     std::uint64_t first_child) {
        for (std::size_t i = 0; i + 1 < ways; i++) {
            const std::uint64_t of_child = begin + (i + 1) * stride;
            Form::put(lines_[line], i,
                      of_child < cell.boundaries.size() ? static_cast<Number>(cell.boundaries[of_child] - 1)
                                                        : Form::last_of(cell.last));
        }
        if constexpr (Form::part == SIEVE_RANGES_IPV4)
            Form::put(lines_[line], ways - 1, static_cast<Number>(first_child));
        else
            lines_[line].word[ways - 1] = first_child;
    }

    std::uint32_t shift_;
    sieve_line* lines_;
    std::uint64_t first_;
    std::uint64_t count_ = 0;
    std::uint64_t leaf_ = 0;       // the leaf that takes the next cell of few boundaries
    std::size_t leaf_used_ = ways; // how many of its places are taken: none is left
    std::uint64_t leaf_first_ = 0; // the first word of its first cell
};

template <class Form>
class Layout final : public PartLayout {
    using Number = typename Form::Number;

  public:
    explicit Layout(const Boundaries<Number>& boundaries) : boundaries_(boundaries) {
        if (!boundaries_.at.empty()) choose_shift();
    }

    [[nodiscard]] std::uint64_t table_lines() const override {
        return (cells_ + SIEVE_RANGES_ENTRIES - 1) / SIEVE_RANGES_ENTRIES;
    }
    [[nodiscard]] std::uint64_t body_lines() const override { return body_lines_; }

    void describe(sieve_lookup& lookup, std::uint64_t table) const override {
        const bool above = boundaries_.begins_inside != (boundaries_.at.size() % 2 == 1);
        lookup.hash_key[2 * Form::part] = first_word() | shift_ |
                                          (boundaries_.begins_inside ? 1U << SIEVE_RANGES_BELOW_BIT : 0U) |
                                          (above ? 1U << SIEVE_RANGES_ABOVE_BIT : 0U);
        lookup.hash_key[2 * Form::part + 1] = cells_ | table << 32;
    }

    void fill(std::span<sieve_line> filter, std::uint64_t table, std::uint64_t body) const override {
        auto* entries = reinterpret_cast<sieve_ranges_u32*>(filter.data() + table);
        Body<Form> lines(shift_, filter.data() + body, body);
        std::uint64_t next = 0;
        bool inside = boundaries_.begins_inside;
        each_cell(shift_, [&](const Cell<Number>& cell) {
            const std::uint64_t at = (cell.first - first_word()) >> shift_;
            std::fill(entries + next, entries + at, entry_of(inside, 0, 0));
            entries[at] = lines.add(cell);
            inside = cell.inside != (cell.boundaries.size() % 2 == 1);
            next = at + 1;
        });
    }

  private:
    // The most lines that finer cells may cost, beside the fewest possible. Each level less is time saved on
    // every packet. Small lists get up to three times the least: a core's own cache holds 128 KiB more.
    [[nodiscard]] static std::uint64_t worth(std::uint64_t least) {
        constexpr std::uint64_t cheap = 2048;
        return least + std::max(least / 2, std::min(2 * least, cheap));
    }

    // Boundaries for each cell on average, beyond which trees are surely too deep.
    static constexpr std::uint64_t most_boundaries_a_cell = 1024;

    [[nodiscard]] std::uint64_t first_word() const {
        return cells_ == 0 ? 0 : Form::word(boundaries_.at.front()) >> shift_ << shift_;
    }

    [[nodiscard]] std::uint64_t cells_at(std::uint32_t shift) const {
        return (Form::word(boundaries_.at.back()) >> shift) - (Form::word(boundaries_.at.front()) >> shift) +
               1;
    }

    // Calls `visit` for each cell that has a boundary, in order.
    template <class Visit>
    void each_cell(std::uint32_t shift, const Visit& visit) const {
        bool inside = boundaries_.begins_inside;
        const std::span<const Number> all = boundaries_.at;
        for (std::size_t at = 0; at < all.size();) {
            const std::uint64_t first = Form::word(all[at]) >> shift << shift;
            const std::uint64_t last = first | ((std::uint64_t{1} << shift) - 1);
            if (all[at] == Form::first_of(first)) {
                inside = !inside;
                at++;
            }
            std::size_t end = at;
            while (end < all.size() && Form::word(all[end]) <= last) end++;
            visit(Cell<Number>{first, last, all.subspan(at, end - at), inside});
            inside = inside != ((end - at) % 2 == 1);
            at = end;
        }
    }

    [[nodiscard]] std::uint64_t count_body(std::uint32_t shift) const {
        Body<Form> lines(shift, nullptr, 0);
        each_cell(shift, [&](const Cell<Number>& cell) { lines.add(cell); });
        return lines.lines();
    }

    void choose_shift();

    const Boundaries<Number>& boundaries_;
    std::uint32_t shift_ = 0;
    std::uint64_t cells_ = 0;
    std::uint64_t body_lines_ = 0;
};

template <class Form>
void Layout<Form>::choose_shift() {
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max(); // lines
    for (std::uint32_t shift = Form::most_shift; shift >= SIEVE_RANGES_LEAST_SHIFT; shift--) {
        const std::uint64_t cells = cells_at(shift);
        const std::uint64_t table = (cells + SIEVE_RANGES_ENTRIES - 1) / SIEVE_RANGES_ENTRIES;
        if (table > limit) break;
        // A step to finer cells at most doubles their number, so that some size is looked at.
        if (shift > SIEVE_RANGES_LEAST_SHIFT) {
            const std::uint64_t finer = cells_at(shift - 1);
            if (finer == cells || finer * most_boundaries_a_cell < boundaries_.at.size()) continue;
        }
        const std::uint64_t body = count_body(shift);
        if (table + body > limit) continue;
        limit = std::min(limit, worth(table + body));
        shift_ = shift;
        cells_ = cells;
        body_lines_ = body;
    }
}

} // namespace

std::unique_ptr<PartLayout> layout_of(const Boundaries<std::uint32_t>& ipv4) {
    return std::make_unique<Layout<Ipv4Form>>(ipv4);
}

std::unique_ptr<PartLayout> layout_of(const Boundaries<std::uint64_t>& ipv6) {
    return std::make_unique<Layout<Ipv6Form>>(ipv6);
}

std::unique_ptr<PartLayout> layout_of(const Boundaries<uint128>& fine) {
    return std::make_unique<Layout<FineForm>>(fine);
}

} // namespace sieve::ranges
