// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Inserts keys and prefixes into a counting filter, or deletes them, while packets may be looked up. Keeps
// the filter's header up to date.
//
// What is changed is an entry (filters/prefixes/prefix_entries.hpp): a key, or a prefix, of which the filter
// stores several keys. A prefix goes in with all of them or with none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sieve/image.h>

#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

enum class KeyChange : std::uint8_t {
    insert,       // refused if the key already matches
    insert_again, // allowed even then; the key must be deleted as often as it was inserted
    erase,
};

struct KeyChangeReport {
    std::uint64_t done = 0;      // entries that were changed
    std::uint64_t repeated = 0;  // listed more than once, but changed once
    std::vector<sieve_key> told; // entries; insert: already matched; erase: did not match
    std::vector<sieve_key> full; // insert: no room in their buckets
    std::uint64_t keys = 0;      // stored in the filter afterwards
    double expected_fpr = 0;     // of the filter afterwards: exact, over random keys; of all probes together
};

// Knows more about the entries than the filter does, and keeps account of what happens to them.
class KeyAccount {
  public:
    virtual ~KeyAccount() = default;

    // What to do about a key.
    enum class Step : std::uint8_t {
        change, // change the filter; after() or no_room() follows
        done,   // the filter need not change: the key counts as done
        told,   // as in the report
        full,   // there is no room for the key beside the filter
    };
    // Called before the filter changes. `matches`: the filter contains all that is stored for the entry.
    [[nodiscard]] virtual Result<Step> before(const sieve_key& key, bool matches) = 0;
    // The filter has changed.
    [[nodiscard]] virtual Status after(const sieve_key& key) = 0;
    // The filter has no room for the key, or turned out not to hold it, and has not changed.
    [[nodiscard]] virtual Status no_room(const sieve_key& key) = 0;
};

// Makes the change for each entry in turn. Each change is complete before the next begins. A change that
// cannot be made leaves the filter as it is and does not hinder the others. The function keeps the number of
// keys, the number of changes and the expected rate in `file`. Only one writer at a time (sieve/ddlcbf.h says
// why packets need not be kept away).
//
// Errors that leave everything unchanged: the filter's kind does not allow single changes, its header and
// lines do not belong together, or there is no memory. An error of kind unfinished: memory ran out after some
// keys were changed; `file` counts these.
//
// With an account, the account decides what to do about each entry, instead of the rules of KeyChange. An
// error of the account ends the work.
//
// A prefix matches if the filter contains every key that is stored for it, which prefixes around and within
// it may bring about. Only an account can tell.
//
// `stored` is that of the filter. Each entry must have a probe. The second form is for sets without prefixes.
Result<KeyChangeReport> change_keys(const StoredKeys& stored, const sieve_lookup& lookup, sieve_file& file,
                                    std::span<sieve_line> filter, std::span<const sieve_key> entries,
                                    KeyChange change, const Progress& progress,
                                    KeyAccount* account = nullptr);
Result<KeyChangeReport> change_keys(const sieve_lookup& lookup, sieve_file& file,
                                    std::span<sieve_line> filter, const KeySet& keys, KeyChange change,
                                    const Progress& progress, KeyAccount* account = nullptr);

// What came of a difference.
struct DifferenceReport {
    std::uint64_t done = 0;             // keys that came or went
    std::uint64_t no_room = 0;          // keys to be added whose buckets are full: the filter misses them
    std::uint64_t absent = 0;           // keys to be removed that the filter did not have
    std::uint64_t keys = 0;             // in the filter afterwards
    std::optional<double> expected_fpr; // of the filter afterwards, if it was asked for
};

// Removes keys and then adds keys, for a caller that knows exactly which keys are in the filter: `removed`
// were added before, `added` were not, and no key is named twice. A key to be added may match already, as a
// false positive; it is added all the same. `rate`: also computes the expected rate, which walks the whole
// filter, and stores it in `file`. Everything else is as for change_keys().
Result<DifferenceReport> apply_difference(const sieve_lookup& lookup, sieve_file& file,
                                          std::span<sieve_line> filter, const KeySet& removed,
                                          const KeySet& added, bool rate);

} // namespace sieve
