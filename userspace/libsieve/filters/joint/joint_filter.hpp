// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Builds a joint filter (sieve/joint.h): one filter that names the first of several sets that holds a key.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <sieve/exact_table.h>
#include <sieve/joint.h>

#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// The size of a joint filter that hashes. At most one of the two is given; neither means 16 bits a key.
struct JointOptions {
    std::optional<double> fpr; // of each set: the smallest filter whose predicted rate is at most this
    std::optional<double> bits_per_key; // counts the keys of all sets, each key once
    std::optional<std::uint64_t> seed;  // for tests: makes the filter reproducible and its secret known
    bool exact = false; // a table of addresses, whose size follows from the keys; takes sets of one address
};

// What a joint filter with this header and these lines of its own answers: the number of the first set that
// holds the key. A key that no set holds gets nothing, or, from a filter that hashes, by mistake any number.
// Runs the same locate and test as the packet path.
[[nodiscard]] std::optional<std::uint32_t>
find_joint(const sieve_lookup& lookup, std::span<const sieve_line> lines, const sieve_key& key);

// What is wrong with the header of a joint filter; empty if nothing is.
[[nodiscard]] std::string joint_fault(const sieve_lookup& lookup);

class JointFilter {
  public:
    // Builds the filter of these sets, numbered in this order. All have the same fields. Memory: 32 bytes a
    // key; exact: 8. Time: that of a filter of kind xorsat, or exact, with all the keys.
    // Errors: invalid_request for fewer than 2 sets or more than 16, for sets of different fields
    // and for a rate that is out of reach; bad_input if the finished filter misses a key, or if a measurement
    // contradicts the expected rate.
    static Result<JointFilter> build(std::span<const KeySet* const> sets, const JointOptions& options,
                                     const Progress& progress = {});

    // Reads the lines() of a filter that another process has built. Believes nothing: works out the rates
    // from the bits and measures them with fresh random keys. Whether it names the right sets is for the
    // caller to ask. bad_input: a header that is not that of a joint filter of as many lines as there are, a
    // line that cannot state every number, or a measurement that contradicts the bits.
    static Result<JointFilter> load(Input& input);

    // See find_joint().
    [[nodiscard]] std::optional<std::uint32_t> find(const sieve_key& key) const;

    [[nodiscard]] bool exact() const { return lookup().kind == SIEVE_KIND_EXACT; }
    // How many sets it answers for.
    [[nodiscard]] std::uint32_t sets() const;
    [[nodiscard]] std::uint32_t fields() const { return lookup().fields; }
    // Distinct keys of all sets together.
    [[nodiscard]] std::uint64_t keys() const { return file().keys; }

    // Random: tells one build from another.
    [[nodiscard]] std::span<const __u64, 2> identity() const { return file().identity; }

    // The rates of one set: the share of the keys in no set that get that set's number; exact: 0. The rate of
    // all sets together is sets() times as high.
    [[nodiscard]] double predicted_rate() const; // by the model of kind xorsat, before the build
    [[nodiscard]] double expected_rate() const;  // exactly, from the bits

    // The whole map: header lines as in an image, then the filter's own lines.
    [[nodiscard]] std::span<const sieve_line> lines() const { return {lines_.data(), lines_.size()}; }

  private:
    explicit JointFilter(std::uint64_t filter_lines);
    static Result<JointFilter> build_exact(std::span<const KeySet* const> sets, const JointOptions& options);

    [[nodiscard]] sieve_lookup& lookup();
    [[nodiscard]] const sieve_lookup& lookup() const;
    [[nodiscard]] sieve_file& file();
    [[nodiscard]] const sieve_file& file() const;
    [[nodiscard]] std::span<sieve_line> filter();
    [[nodiscard]] std::span<const sieve_line> filter() const;
    [[nodiscard]] bool states_every_number() const;
    // Whether each key gets its number. The hashes are those of the build, combined with the numbers.
    [[nodiscard]] bool names_every_key(std::span<const sieve_hash> numbered) const;
    [[nodiscard]] std::optional<std::uint32_t> find_hash(const sieve_hash& hash) const;
    // Notes the rates that follow from the bits, and measures them with random hashes from this seed.
    [[nodiscard]] Status rate(std::uint64_t seed);
    // Exact: checks every entry of the table, and counts them.
    [[nodiscard]] Status check_table() const;

    HugeArray<sieve_line> lines_;
};

} // namespace sieve
