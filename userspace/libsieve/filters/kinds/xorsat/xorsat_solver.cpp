// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/xorsat/xorsat_solver.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "libsieve/filters/placement/wide_line.hpp"

namespace sieve {

namespace {

constexpr int degrees = 64; // of x: the bits of a window
constexpr int windows = SIEVE_XORSAT_WINDOWS;
constexpr std::array<int, windows> window_start = SIEVE_XORSAT_STARTS;
constexpr int joints = windows - 1;
// The header is part of the first window, and counts as zero.
constexpr int header_bits = SIEVE_LINE_BITS - SIEVE_XORSAT_UNKNOWNS;
// Elements that always hold: one for each joint, and the header's.
constexpr int fixed = joints + 1;

// Bits that windows i and i + 1 have in common.
constexpr int overlap(int i) {
    return degrees -
           8 * (window_start[static_cast<std::size_t>(i) + 1] - window_start[static_cast<std::size_t>(i)]);
}

// Ages of fixed elements are below zero if q is small; all ages are stored with this added. An age is the sum
// of a period of eight and a residue, and the residue of a row never changes.
constexpr int age_zero = 128;
constexpr int period = 8;
constexpr int periods = (age_zero + SIEVE_XORSAT_MAX_Q) / period + 2;
// The q that one elimination distinguishes: the fixed elements' ages are right for that many.
constexpr int span_of_q = 8;

constexpr std::size_t most_rows = 1024;
static_assert(XorsatSolver::most_keys + fixed <= most_rows);

using Half [[gnu::vector_size(32)]] = std::uint64_t;
using Tail [[gnu::vector_size(16)]] = std::uint64_t;

// An element of the module, with its right side. Byte p of `low` and `high` holds the bits of degree p of the
// first eight windows, so that a multiplication by x moves the bytes by one, and the next column of all
// windows is one load. tail[0] is the ninth window. tail[1] is the right side: bit j that of the row times
// x^j.
struct Row {
    Half low;
    Half high;
    Tail tail;
};

SIEVE_ALWAYS_INLINE std::uint8_t* bytes_of(Row& row) {
    return reinterpret_cast<std::uint8_t*>(&row);
}
SIEVE_ALWAYS_INLINE const std::uint8_t* bytes_of(const Row& row) {
    return reinterpret_cast<const std::uint8_t*>(&row);
}

// The equation of a column.
struct Pivot {
    Row row;
    std::uint16_t head; // the row's bits of the column's degree
    std::uint16_t age;
    std::uint16_t column;
};

// A set of rows.
template <int words>
struct Rows {
    std::array<std::uint64_t, words> word{};

    SIEVE_ALWAYS_INLINE void insert(std::size_t row) { word[row / 64] |= std::uint64_t{1} << row % 64; }
    SIEVE_ALWAYS_INLINE void erase(std::size_t row) { word[row / 64] &= ~(std::uint64_t{1} << row % 64); }
    [[nodiscard]] SIEVE_ALWAYS_INLINE bool has(std::size_t row) const {
        return (word[row / 64] >> row % 64 & 1) != 0;
    }
    [[nodiscard]] SIEVE_ALWAYS_INLINE bool empty() const {
        std::uint64_t any = 0;
        for (int w = 0; w < words; w++) any |= word[w];
        return any == 0;
    }
    // The rows 8 g to 8 g + 7, as bits.
    SIEVE_ALWAYS_INLINE void set_group(std::size_t g, std::uint8_t rows) {
        word[g / 8] |= std::uint64_t{rows} << g % 8 * 8;
    }
    [[nodiscard]] SIEVE_ALWAYS_INLINE std::uint8_t group(std::size_t g) const {
        return static_cast<std::uint8_t>(word[g / 8] >> g % 8 * 8);
    }
    // The first row that is in both sets; most_rows if there is none.
    [[nodiscard]] SIEVE_ALWAYS_INLINE std::size_t first_common(const Rows& other) const {
        for (int w = 0; w < words; w++)
            if (const std::uint64_t common = word[w] & other.word[w])
                return static_cast<std::size_t>(64 * w + std::countr_zero(common));
        return most_rows;
    }
    // Adds, modulo 2, the other set if `wanted`.
    SIEVE_ALWAYS_INLINE void toggle(const Rows& other, bool wanted) {
        const std::uint64_t mask = std::uint64_t{0} - std::uint64_t{wanted};
        for (int w = 0; w < words; w++) word[w] ^= other.word[w] & mask;
    }
};

// Transposes an 8x8 matrix of bits: bit i of byte b becomes bit b of byte i (Warren, "Hacker's Delight",
// 7-3).
SIEVE_ALWAYS_INLINE std::uint64_t transposed(std::uint64_t m) {
    std::uint64_t t = (m ^ (m >> 7)) & 0x00aa00aa00aa00aaULL;
    m ^= t ^ (t << 7);
    t = (m ^ (m >> 14)) & 0x0000cccc0000ccccULL;
    m ^= t ^ (t << 14);
    t = (m ^ (m >> 28)) & 0x00000000f0f0f0f0ULL;
    return m ^ t ^ (t << 28);
}

} // namespace

// A solver's memory.
struct XorsatWork {
    std::array<Row, most_rows> row;
    std::array<std::uint16_t, most_rows> age; // rows are in rising order of their ages' residues
    std::array<Pivot, degrees * windows> pivot;
    std::array<std::uint16_t, degrees> pivots; // by degree
};

namespace {

// How many equations the keys have at this q.
int equations(const std::array<int, 8>& of_class, int q) {
    int sum = 0;
    for (int c = 0; c < 8; c++) sum += of_class[static_cast<std::size_t>(c)] * ((q + c) >> 3);
    return sum;
}

// The largest q with no more equations than unknowns.
int q_by_count(const std::array<int, 8>& of_class) {
    int q = 0;
    int step = 128;
    for (; step > 0; step /= 2)
        if (q + step <= SIEVE_XORSAT_MAX_Q && equations(of_class, q + step) <= SIEVE_XORSAT_UNKNOWNS)
            q += step;
    return q;
}

template <int words>
class Elimination {
  public:
    SIEVE_ALWAYS_INLINE Elimination(XorsatWork& work, std::span<const sieve_hash> keys, int least_q)
        : row_(work.row.data()), age_(work.age.data()), pivot_(work.pivot.data()),
          pivots_(work.pivots.data()), rows_(keys.size() + fixed),
          oldest_(age_zero + std::min(least_q + span_of_q - 1, SIEVE_XORSAT_MAX_Q)) {
        const auto age_of = [](const sieve_hash& key) {
            return age_zero + period - static_cast<int>(key.test >> SIEVE_XORSAT_CLASS_SHIFT);
        };
        // Where the rows of each residue begin.
        std::array<std::size_t, period> next{};
        const auto residue = [](int age) { return static_cast<std::size_t>(age % period); };
        const int fixed_age = age_zero + least_q; // of the last multiple that holds
        std::array<std::size_t, period> of_residue{};
        of_residue[residue(fixed_age)] = fixed;
        for (const sieve_hash& key : keys) of_residue[residue(age_of(key))]++;
        for (std::size_t i = 1; i < period; i++) next[i] = next[i - 1] + of_residue[i - 1];

        for (std::size_t r = 0; r < (rows_ + 7) / 8 * 8; r++) row_[r] = Row{}; // whole groups of eight
        for (int i = 0; i < joints; i++) {
            const std::size_t r = next[residue(fixed_age)]++;
            bytes_of(row_[r])[degrees - overlap(i)] = static_cast<std::uint8_t>(1 << i);
            if (i + 1 < joints)
                bytes_of(row_[r])[0] |= static_cast<std::uint8_t>(1 << (i + 1));
            else
                row_[r].tail[0] = 1;
            set_age(r, fixed_age - period * (overlap(i) - 1));
        }
        const std::size_t header = next[residue(fixed_age)]++;
        bytes_of(row_[header])[0] = 1;
        set_age(header, fixed_age - period * (header_bits - 1));
        for (const sieve_hash& key : keys) {
            const std::size_t r = next[residue(age_of(key))]++;
            std::uint64_t bits = key.test;
            for (int i = 0; i < joints; i++, bits >>= 6)
                bytes_of(row_[r])[bits & 63] |= static_cast<std::uint8_t>(1 << i);
            const std::uint64_t last = std::uint64_t{1} << (bits & 63);
            row_[r].tail =
                Tail{last ^ std::uint64_t{1} << sieve_xorsat_again(key.test), sieve_xorsat_fingerprint(key)};
            set_age(r, age_of(key));
        }
    }

    // Clears all columns. Returns the largest q without a contradiction, at most the largest that this
    // elimination can tell; below zero if there is a contradiction at each.
    SIEVE_ALWAYS_INLINE int run() {
        for (int p = 0; p < degrees / 2; p++) clear<true>(p);
        for (int p = degrees / 2; p < degrees; p++) clear<false>(p);
        int last = oldest_;
        for (std::size_t r = 0; r < rows_; r++)
            if (age_[r] <= last && row_[r].tail[1] != 0)
                last =
                    std::min(last, age_[r] + period * std::countr_zero(std::uint64_t{row_[r].tail[1]}) - 1);
        return last - age_zero;
    }

    // Solves the equations up to q by back substitution. The columns without an equation are zero.
    SIEVE_ALWAYS_INLINE void substitute(int q, sieve_line& line) const {
        Row solution{};
        for (int p = degrees; p-- > 0;) {
            const Pivot* const pivot = pivot_ + p * windows;
            const int count = pivots_[p];
            std::array<std::uint32_t, windows> right{};
            for (int k = 0; k < count; k++) {
                const Half half = (pivot[k].row.low & solution.low) ^ (pivot[k].row.high & solution.high);
                const Tail tail = pivot[k].row.tail & solution.tail;
                right[static_cast<std::size_t>(k)] = static_cast<std::uint32_t>(
                    (pivot[k].row.tail[1] & 1) ^
                    std::uint64_t(__builtin_parityll(half[0] ^ half[1] ^ half[2] ^ half[3] ^ tail[0])));
            }
            std::uint32_t found = 0;
            for (int k = count; k-- > 0;)
                if (pivot[k].age <= age_zero + q)
                    found |= (right[static_cast<std::size_t>(k)] ^
                              static_cast<std::uint32_t>(__builtin_parity(pivot[k].head & found)))
                             << pivot[k].column;
            bytes_of(solution)[p] = static_cast<std::uint8_t>(found);
            solution.tail[0] |= std::uint64_t{found >> joints} << p;
        }
        char* const bytes = reinterpret_cast<char*>(&line);
        for (int i = 0; i < windows; i++) {
            std::uint64_t window = solution.tail[0];
            if (i < joints) {
                window = 0;
                for (int p = 0; p < degrees; p++)
                    window |= std::uint64_t{bytes_of(solution)[p] >> i & 1U} << p;
            }
            std::memcpy(bytes + window_start[static_cast<std::size_t>(i)], &window, sizeof(window));
        }
    }

  private:
    using Set = Rows<words>;

    // Rows beyond the oldest age that counts take no further part.
    SIEVE_ALWAYS_INLINE void set_age(std::size_t r, int age) {
        age_[r] = static_cast<std::uint16_t>(age);
        if (age > oldest_) return;
        alive_.insert(r);
        of_period_[static_cast<std::size_t>(age / period)].insert(r);
        youngest_ = std::min(youngest_, age / period);
    }

    // column[i]: the rows that have window i's bit of degree p.
    SIEVE_ALWAYS_INLINE void gather(int p, std::array<Set, windows>& column) const {
        for (std::size_t g = 0; period * g < rows_; g++) {
            const Row* const group = row_ + 8 * g;
            std::uint64_t heads = 0;
            std::uint64_t ninth = 0;
#pragma GCC unroll 8
            for (int r = 0; r < 8; r++) {
                heads |= std::uint64_t{bytes_of(group[r])[p]} << 8 * r;
                ninth |= (group[r].tail[0] >> p & 1) << r;
            }
            heads = transposed(heads);
#pragma GCC unroll 8
            for (std::size_t i = 0; i < joints; i++)
                column[i].set_group(g, static_cast<std::uint8_t>(heads >> 8 * i));
            column[joints].set_group(g, static_cast<std::uint8_t>(ninth));
        }
#pragma GCC unroll 9
        for (Set& set : column)
            for (int w = 0; w < words; w++) set.word[w] &= alive_.word[w];
    }

    template <bool both>
    SIEVE_ALWAYS_INLINE static void add(Row& to, const Row& a, const Row& b, const Row& c) {
        if constexpr (both) to.low ^= a.low ^ b.low ^ c.low;
        to.high ^= a.high ^ b.high ^ c.high;
        to.tail ^= a.tail ^ b.tail ^ c.tail;
    }

    // Clears the columns of degree p. All rows are zero below it. `both` says that p lies in the lower half.
    template <bool both>
    SIEVE_ALWAYS_INLINE void clear(int p) {
        std::array<Set, windows> column{};
        gather(p, column);

        // Which rows become equations, and which rows each of them is added to.
        std::array<Set, windows> users{};
        std::array<std::size_t, windows> chosen{};
        Pivot* const pivot = pivot_ + p * windows;
        std::size_t count = 0;
        for (std::size_t i = 0; i < windows; i++) {
            const Set here = column[i];
            if (here.empty()) continue;
            while (of_period_[static_cast<std::size_t>(youngest_)].empty()) youngest_++;
            // Within a period, the first row is the youngest.
            int age = youngest_;
            std::size_t r = most_rows;
            while ((r = here.first_common(of_period_[static_cast<std::size_t>(age)])) == most_rows) age++;
            std::uint32_t bits = 1U << i;
#pragma GCC unroll 8
            for (std::size_t later = i + 1; later < windows; later++) {
                const bool has = column[later].has(r);
                bits |= std::uint32_t{has} << later;
                column[later].toggle(here, has);
            }
            users[count] = here;
            users[count].erase(r);
            chosen[count] = r;
            pivot[count].head = static_cast<std::uint16_t>(bits);
            pivot[count].column = static_cast<std::uint16_t>(i);
            pivot[count].age = age_[r];
            count++;
        }
        pivots_[p] = static_cast<std::uint16_t>(count);
        if (count == 0) return;

        // The same by row: bit k of uses[r] says that equation k is added to row r.
        alignas(64) std::array<std::uint8_t, 64 * words> uses;
        for (std::size_t g = 0; 8 * g < rows_; g++) {
            std::uint64_t group = 0;
#pragma GCC unroll 8
            for (std::size_t k = 0; k < 8; k++) group |= std::uint64_t{users[k].group(g)} << 8 * k;
            group = transposed(group);
            std::memcpy(&uses[8 * g], &group, 8);
        }

        // Sums of the equations, by threes (the method of four Russians).
        std::array<std::array<Row, 8>, 3> sums;
        for (auto& table : sums) table[0] = Row{};
        for (std::size_t k = 0; k < count; k++) {
            const std::size_t r = chosen[k];
            const std::uint32_t use = uses[r];
            Row equation = row_[r];
            add<both>(equation, sums[0][use & 7], sums[1][use >> 3 & 7], sums[2][use >> 6]);
            pivot[k].row = equation;
            auto& table = sums[k / 3];
            const std::size_t bit = std::size_t{1} << k % 3;
            for (std::size_t m = 0; m < bit; m++) {
                if constexpr (both) table[m | bit].low = table[m].low ^ equation.low;
                table[m | bit].high = table[m].high ^ equation.high;
                table[m | bit].tail = table[m].tail ^ equation.tail;
            }
            // Times x. The byte that leaves the row falls on the ninth window, which is written afterwards.
            if constexpr (both) std::memcpy(bytes_of(row_[r]) + 1, &equation.low, sizeof(Half));
            std::memcpy(bytes_of(row_[r]) + sizeof(Half) + 1, &equation.high, sizeof(Half));
            row_[r].tail = Tail{equation.tail[0] << 1, equation.tail[1] >> 1};
            uses[r] = 0;
            of_period_[pivot[k].age / period].erase(r);
            alive_.erase(r);
            set_age(r, pivot[k].age + period);
        }

        const Set& last = users[8];
        for (std::size_t r = 0; r < rows_; r++) {
            const std::uint32_t use = uses[r];
            const std::uint32_t ninth = static_cast<std::uint32_t>(last.word[r / 64] >> r % 64 & 1) << 2;
            add<both>(row_[r], sums[0][use & 7], sums[1][use >> 3 & 7], sums[2][use >> 6 | ninth]);
        }
    }

    Row* row_;
    std::uint16_t* age_;
    Pivot* pivot_;
    std::uint16_t* pivots_;
    std::size_t rows_;
    int oldest_;
    int youngest_ = periods; // of all rows alive, or an earlier period
    Set alive_{};
    std::array<Set, periods> of_period_{}; // the rows alive by the period of their age
};

template <int words>
SIEVE_ALWAYS_INLINE std::uint32_t solve_sized(XorsatWork& work, std::span<const sieve_hash> keys,
                                              sieve_line& line, int q) {
    // Nearly always the largest q is at most three less than the equations' number suggests, and hardly ever
    // more.
    int least = std::max(0, q - span_of_q / 2);
    for (;; least = std::max(0, least - span_of_q)) {
        Elimination<words> elimination(work, keys, least);
        const int found = elimination.run();
        if (found < least) continue;
        elimination.substitute(found, line);
        return static_cast<std::uint32_t>(found);
    }
}

SIEVE_ALWAYS_INLINE std::uint32_t solve_line(XorsatWork& work, std::span<const sieve_hash> keys,
                                             sieve_line& line) {
    std::array<int, 8> of_class{};
    for (const sieve_hash& key : keys) of_class[key.test >> SIEVE_XORSAT_CLASS_SHIFT]++;
    const int q = q_by_count(of_class);
    const std::size_t rows = keys.size() + fixed;
    if (rows <= 64) return solve_sized<1>(work, keys, line, q);
    if (rows <= 128) return solve_sized<2>(work, keys, line, q);
    if (rows <= 256) return solve_sized<4>(work, keys, line, q);
    return solve_sized<16>(work, keys, line, q);
}

#ifdef __x86_64__
[[gnu::target("arch=x86-64-v3")]] std::uint32_t
solve_newer(XorsatWork& work, std::span<const sieve_hash> keys, sieve_line& line) {
    return solve_line(work, keys, line);
}
#endif
std::uint32_t solve_plain(XorsatWork& work, std::span<const sieve_hash> keys, sieve_line& line) {
    return solve_line(work, keys, line);
}

} // namespace

XorsatSolver::XorsatSolver(Code code) : work_(std::make_unique<XorsatWork>()), solve_(solve_plain) {
#ifdef __x86_64__
    if (code == Code::best && __builtin_cpu_supports("x86-64-v3")) solve_ = solve_newer;
#else
    (void)code;
#endif
}

XorsatSolver::~XorsatSolver() = default;

std::uint32_t XorsatSolver::solve(std::span<const sieve_hash> keys, sieve_line& line) {
    const std::uint64_t exports = line.word[0] & 0xff00;
    std::uint32_t q = 0;
    if (keys.empty())
        q = SIEVE_XORSAT_MAX_Q;
    else if (keys.size() <= most_keys)
        q = solve_(*work_, keys, line);
    line.word[0] = (line.word[0] & ~std::uint64_t{0xffff}) | exports | q;
    return q;
}

} // namespace sieve
