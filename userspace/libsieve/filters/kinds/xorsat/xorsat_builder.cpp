// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/xorsat/xorsat_builder.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>
#include <vector>

#include "libsieve/filters/kinds/xorsat/xorsat_exports.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_solver.hpp"
#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {

namespace {

// Keys and lines that one thread works on at a time.
constexpr std::size_t keys_at_once = 1 << 15;
constexpr std::uint32_t lines_at_once = 256;
// How many of these pieces lie between two reports of progress.
constexpr std::size_t pieces_of_progress = 64;

// An eighth that a line keeps for another.
struct Import {
    std::uint32_t to;
    std::uint32_t from;
    std::uint32_t eighth;

    friend bool operator<(const Import& a, const Import& b) {
        return std::tie(a.to, a.from, a.eighth) < std::tie(b.to, b.from, b.eighth);
    }
};

class Filling {
  public:
    Filling(std::span<const sieve_hash> keys, const sieve_lookup& lookup, std::span<sieve_line> lines)
        : keys_(keys), lookup_(lookup), lines_(lines), first_(lines.size() + 1) {}

    // Finds each line's keys.
    void find_lines() {
        for_each_index(keys_.size() / keys_at_once + 1, [&](std::size_t piece) {
            const std::size_t end = std::min(keys_.size(), (piece + 1) * keys_at_once);
            for (std::size_t i = piece * keys_at_once; i < end; i++) {
                const std::uint32_t line = sieve_xorsat_line(&lookup_, keys_[i]);
                const std::uint64_t before =
                    i == 0 ? 0 : sieve_xorsat_line(&lookup_, keys_[i - 1]) + std::uint64_t{1};
                for (std::uint64_t l = before; l <= line; l++) first_[l] = i;
            }
        });
        const std::uint64_t after =
            keys_.empty() ? 0 : sieve_xorsat_line(&lookup_, keys_.back()) + std::uint64_t{1};
        for (std::uint64_t l = after; l < first_.size(); l++) first_[l] = keys_.size();
    }

    void choose(std::uint32_t sweeps, const Progress& progress) {
        XorsatCounts counts(lines_.size() * SIEVE_XORSAT_EIGHTHS);
        for_each_piece(0, pieces(), [&](std::uint32_t begin, std::uint32_t end) {
            for (std::uint32_t line = begin; line < end; line++)
                for (const sieve_hash& key : own_keys(line)) {
                    std::uint16_t& count =
                        counts[std::size_t{line} * SIEVE_XORSAT_EIGHTHS + sieve_xorsat_eighth(key)];
                    if (count < std::numeric_limits<std::uint16_t>::max()) count++;
                }
        });
        exports_ = choose_exports(lookup_, counts, sweeps, progress).of_line;
    }

    void solve(const Progress& progress) {
        for (std::size_t piece = 0; piece < pieces(); piece += pieces_of_progress) {
            if (progress) progress("solving", static_cast<double>(piece) / static_cast<double>(pieces()));
            for_each_piece(piece, std::min(pieces(), piece + pieces_of_progress),
                           [&](std::uint32_t begin, std::uint32_t end) { solve_lines(begin, end); });
        }
    }

  private:
    [[nodiscard]] std::size_t pieces() const { return (lines_.size() + lines_at_once - 1) / lines_at_once; }

    template <class Work>
    void for_each_piece(std::size_t begin, std::size_t end, const Work& work) const {
        for_each_index(end - begin, [&](std::size_t i) {
            const std::size_t first = (begin + i) * lines_at_once;
            work(static_cast<std::uint32_t>(first),
                 static_cast<std::uint32_t>(std::min(lines_.size(), first + lines_at_once)));
        });
    }

    // The keys whose own line it is.
    [[nodiscard]] std::span<const sieve_hash> own_keys(std::uint32_t line) const {
        return keys_.subspan(first_[line], first_[line + 1] - first_[line]);
    }

    // All imports of the lines from `begin` to `end`, in order.
    [[nodiscard]] std::vector<Import> imports(std::uint32_t begin, std::uint32_t end) const {
        std::vector<Import> found;
        const auto lines = static_cast<std::uint64_t>(lines_.size());
        const std::uint64_t sources = std::min(lines, std::uint64_t{end - begin} + SIEVE_XORSAT_REACH);
        for (std::uint64_t i = 0; i < sources; i++) {
            // The last of the sources is line end - 1.
            const auto from = static_cast<std::uint32_t>((end + lines - sources + i) % lines);
            if (exports_[from] == 0) continue;
            for (std::uint32_t eighth = 0; eighth < SIEVE_XORSAT_EIGHTHS; eighth++) {
                if ((exports_[from] >> eighth & 1) == 0) continue;
                const std::uint32_t to = sieve_xorsat_other(&lookup_, from, eighth);
                if (to >= begin && to < end) found.push_back({.to = to, .from = from, .eighth = eighth});
            }
        }
        std::sort(found.begin(), found.end());
        return found;
    }

    void solve_lines(std::uint32_t begin, std::uint32_t end) {
        XorsatSolver solver;
        std::vector<sieve_hash> keys;
        const std::vector<Import> imported = imports(begin, end);
        auto next = imported.begin();
        for (std::uint32_t line = begin; line < end; line++) {
            keys.clear();
            for (const sieve_hash& key : own_keys(line))
                if ((exports_[line] >> sieve_xorsat_eighth(key) & 1) == 0) keys.push_back(key);
            for (; next != imported.end() && next->to == line; ++next)
                for (const sieve_hash& key : own_keys(next->from))
                    if (sieve_xorsat_eighth(key) == next->eighth) keys.push_back(key);
            lines_[line].word[0] = std::uint64_t{exports_[line]} << 8;
            solver.solve(keys, lines_[line]);
        }
    }

    std::span<const sieve_hash> keys_;
    const sieve_lookup& lookup_;
    std::span<sieve_line> lines_;
    HugeArray<std::uint64_t> first_; // index of each line's first key, and the number of keys
    HugeArray<std::uint8_t> exports_;
};

} // namespace

void fill_xorsat(std::span<const sieve_hash> keys, const sieve_lookup& lookup, std::span<sieve_line> lines,
                 std::uint32_t sweeps, const Progress& progress) {
    assert(lines.size() == lookup.buckets);
    Filling filling(keys, lookup, lines);
    filling.find_lines();
    filling.choose(lookup.choices > 1 ? sweeps : 0, progress);
    filling.solve(progress);
}

} // namespace sieve
