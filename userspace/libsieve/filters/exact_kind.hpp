// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Kinds without false positives. They hold the addresses themselves instead of hashes, so their size follows
// from the list, and nobody has to predict or measure a rate. There are two sorts: those of ranges, which
// hold merged ranges of addresses (ranges), and those of keys, which hold single addresses and can list them
// (exact).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libsieve/filters/changeable_table.hpp"
#include "libsieve/filters/filter_kind.hpp"
#include "libsieve/filters/placement/hash_sum.hpp"
#include "libsieve/filters/prefixes/address_set.hpp"
#include "libsieve/keys/key_set.hpp"

namespace sieve {

/// What a filter that lists its keys says of them all.
struct KeySum {
    std::uint64_t keys = 0;
    HashSum sum{};
};

/// Lives of keys that end, in nanoseconds.
struct Lifetimes {
    std::uint64_t longest = 0;
    std::uint64_t unit = 0; ///< ends may be so much later than asked for, if that is possible
};

/// What a filter is to hold beside the keys that it is made of.
struct Spare {
    std::uint64_t room = 0;               ///< for so many more keys
    std::optional<Lifetimes> lifetimes{}; ///< keys may end, from now on; those that it is made of do not
    bool hits = false;                    ///< a mark for each key, which packets set that find it
};

/// An entry of a filter that lists its keys; when its membership ends: a time that has come if it has ended;
/// and whether it has a mark.
using VisitEntry = std::function<void(const sieve_key& key, std::uint64_t end, bool hit)>;

/// A filter that is worked out but not yet written.
class ExactFilter {
  public:
    virtual ~ExactFilter() = default;

    /// The number of keys that the header counts: distinct addresses, or merged ranges.
    [[nodiscard]] virtual std::uint64_t keys() const = 0;
    /// What the header says of a list of keys (sieve_file::key_sum). Zero for ranges.
    [[nodiscard]] virtual HashSum sum() const { return {}; }

    /// The number of lines that the filter takes.
    [[nodiscard]] virtual std::uint64_t lines() const = 0;
    /// Sets the kind and its fields of the header. Error: the header has no room for a filter of that size.
    [[nodiscard]] virtual Status describe(sieve_lookup& lookup) const = 0;
    /// Fills `lines`, which must be zeroed.
    virtual void fill(std::span<sieve_line> lines) const = 0;
};

class ExactKind : public FilterKind {
  public:
    using FilterKind::FilterKind;

    [[nodiscard]] const ExactKind* exact() const final { return this; }

    /// Whether the filter holds the key's address, which has a whole header. Runs the code of the packet
    /// path; its fetch reads memory.
    [[nodiscard]] virtual bool holds_key(const sieve_lookup& lookup, const sieve_key& key,
                                         std::span<const sieve_line> filter) const = 0;

    /// Calls `visit` for disjoint ranges that are together all addresses that the filter holds, in any order.
    /// Whatever the lines hold, an address is in one of the ranges if and only if holds_key() finds it; but
    /// an IPv6 range that includes the v4-mapped addresses does not mean IPv4, as in an AddressSet.
    /// bad_input, without an origin: the lines are such that this cannot be said, or the kind cannot list its
    /// addresses.
    [[nodiscard]] virtual Status for_each_range(const sieve_lookup& lookup,
                                                std::span<const sieve_line> filter,
                                                const std::function<void(const AddressRange&)>& visit) const;

    /// Whether a filter holds single addresses and lists them. Else it holds ranges.
    [[nodiscard]] virtual bool is_of_keys() const = 0;

    // --- kinds of ranges ----------------------------------------------------------------------------------

    /// Works out the filter of these addresses. The same addresses give the same filter.
    [[nodiscard]] virtual Result<std::unique_ptr<ExactFilter>> work_out(const AddressSet& members) const;

    // --- kinds of keys ------------------------------------------------------------------------------------

    /// Works out the filter of these addresses, some of which may be listed twice. The secrets follow from
    /// `secret`. The same list in the same order and the same secret give the same filter, on any number of
    /// threads. Error: more addresses than a filter can hold.
    [[nodiscard]] virtual Result<std::unique_ptr<ExactFilter>>
    work_out(const KeySet& keys, const Spare& spare,
             std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret) const;

    /// The lines of a filter of so many addresses of either family.
    [[nodiscard]] virtual std::uint64_t lines_for(std::uint64_t ipv4, std::uint64_t ipv6) const;

    /// The members of a filter, read from its lines; in no particular order. Error (bad_input, without an
    /// origin): an entry that is no member of anything, and where it is. In a filter that changes meanwhile,
    /// a key that is being changed may be missing or twice there.
    [[nodiscard]] virtual Result<KeySet> list(const sieve_lookup& lookup,
                                              std::span<const sieve_line> filter) const;

    /// Calls visit for each entry of a filter, those that have ended by `now` included, as list() does for
    /// members. Error as of list().
    [[nodiscard]] virtual Status for_each_entry(const sieve_lookup& lookup,
                                                std::span<const sieve_line> filter, std::uint64_t now,
                                                const VisitEntry& visit) const;

    /// Whether filters of keys of these fields may be made whose keys end (Spare::lifetimes).
    [[nodiscard]] virtual bool states_ends(std::uint32_t) const { return false; }

    /// By how many nanoseconds ends come late, at the least, in a filter that states lives of up to
    /// `longest`.
    [[nodiscard]] virtual std::uint64_t least_delay_of_ends(std::uint64_t) const { return never_ends; }

    /// Whether keys of this filter may end.
    [[nodiscard]] virtual bool has_ends(const sieve_lookup&, std::span<const sieve_line>) const {
        return false;
    }

    /// Whether keys of this filter have marks, which packets set that find them.
    [[nodiscard]] virtual bool has_marks(const sieve_lookup&) const { return false; }

    /// Reads the whole filter and checks every entry against all others. Returns the number of its members
    /// and the sum of their hashes. Error (bad_input, without an origin): what is wrong, and where.
    [[nodiscard]] virtual Result<KeySum> add_up(const sieve_lookup& lookup,
                                                std::span<const sieve_line> filter) const;

    /// Opens the filter for changes. The header and the lines must stay where they are. Error: the kind does
    /// not change, or the lines do not belong to the header.
    [[nodiscard]] virtual Result<std::unique_ptr<ChangeableTable>>
    open_table(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines) const;

    // What is said of filters that hash.
    [[nodiscard]] bool holds(const sieve_lookup&, const sieve_hash&, const sieve_line*) const final {
        return false;
    }
    [[nodiscard]] double expected_rate(const sieve_lookup&, std::span<const sieve_line>,
                                       std::uint64_t) const final {
        return 0;
    }
    [[nodiscard]] std::uint32_t rounds(Effort, std::uint32_t) const final { return 0; }
    /// Refuses: an exact filter is not made of hashes. Callers that build ask exact() first.
    [[nodiscard]] Result<std::unique_ptr<KindBuilder>> builder(const KindOptions& options) const final;
};

} // namespace sieve
