// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Solves one line of a XORSAT filter (sieve/xorsat.h): finds the most equations over GF(2) that have a
// solution, and a solution.
//
// Each bit of a key's fingerprint is an equation. The equation of bit j is that of bit 0 with every window
// shifted by j, so the equations of a key are the multiples x^j g of one element g of a module: nine
// polynomials in x modulo x^64, one for each window. Where two windows overlap, an element c says that they
// agree; its multiples are equations that must hold. A row is an element that was added up from multiples of
// the g and c. It has an age: the q from which on all equations in it hold. Multiplied by x, it ages by
// eight.
//
// The solver clears the columns (the windows' bits) one after another, in rising order of the bit. For each
// column it chooses the youngest row that has the column, adds it to all others that have it, keeps it as the
// column's equation, and multiplies it by x. This is Beckermann and Labahn's order basis ("A uniform approach
// for the fast computation of matrix-type Padé approximants", SIAM J. Matrix Anal. Appl. 15, 1994), in the
// form of Giorgi, Jeannerod and Villard's M-Basis (ISSAC 2003): one constant matrix for each bit, here 9
// columns wide. The rows that remain are a minimal basis of all dependencies between equations, so that the
// largest q without a contradiction can be read from them. Gaussian elimination of the same equations works
// on 576 rows; this method works on one row a key.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <sieve/xorsat.h>

namespace sieve {

struct XorsatWork;

class XorsatSolver {
  public:
    // Which machine code solves: all have the same results.
    enum class Code { best, plain };

    explicit XorsatSolver(Code code = Code::best);
    ~XorsatSolver();
    XorsatSolver(const XorsatSolver&) = delete;
    XorsatSolver& operator=(const XorsatSolver&) = delete;

    // Sets the line's q and unknown bits, such that all keys pass sieve_xorsat_test, and returns q. It is the
    // largest that has a solution, in all but about one of 10^4 lines. Leaves the exports, byte 1, as they
    // are. A line of more than `most_keys` keys gets q = 0, and lets everything pass.
    std::uint32_t solve(std::span<const sieve_hash> keys, sieve_line& line);

    static constexpr std::size_t most_keys = 1000;

  private:
    using Solve = std::uint32_t (*)(XorsatWork&, std::span<const sieve_hash>, sieve_line&);

    std::unique_ptr<XorsatWork> work_;
    Solve solve_;
};

} // namespace sieve
