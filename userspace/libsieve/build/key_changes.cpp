// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/key_changes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <set>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/unfinished.hpp"

namespace sieve {

namespace {

using Words = std::array<std::uint64_t, SIEVE_KEY_WORDS>;

// An atomic store, because `status` may read the header at the same time.
void store(__u64& number, std::uint64_t value) {
    std::atomic_ref<__u64>(number).store(value, std::memory_order_relaxed);
}

// Counts a change, after each key, so that the numbers are right whenever this process dies.
void count(sieve_file& file, bool came) {
    store(file.keys, came ? file.keys + 1 : file.keys - (file.keys > 0 ? 1 : 0));
    store(file.changes, file.changes + 1);
}

// The rules of KeyChange, for which only the filter counts.
KeyAccount::Step step_by_filter(KeyChange change, bool matches) {
    if (change != KeyChange::insert_again && matches == (change == KeyChange::insert))
        return KeyAccount::Step::told;
    return KeyAccount::Step::change;
}

// After an error, the keys that `report` counts stay changed.
Status change_each(const sieve_lookup& lookup, sieve_file& file, ChangeableFilter& filter, const KeySet& keys,
                   KeyChange change, const Progress& progress, KeyAccount* account, KeyChangeReport& report) {
    std::set<Words> seen;
    for (std::size_t i = 0; i < keys.size(); i++) {
        if (progress && (i & 0xfff) == 0)
            progress(change == KeyChange::erase ? "deleting" : "inserting",
                     static_cast<double>(i) / static_cast<double>(keys.size()));
        const sieve_key key = keys.at(i);
        Words words;
        std::copy(std::begin(key.word), std::end(key.word), words.begin());
        if (!seen.insert(words).second) {
            report.repeated++;
            continue;
        }
        const sieve_hash hash = sieve_hash_key(&key, lookup.hash_key, lookup.fields);
        const bool matches = filter.contains(hash);
        KeyAccount::Step step = step_by_filter(change, matches);
        if (account != nullptr) {
            SIEVE_ASSIGN(step, account->before(key, matches));
        }
        if (step == KeyAccount::Step::told) report.told.push_back(key);
        if (step == KeyAccount::Step::full) report.full.push_back(key);
        if (step == KeyAccount::Step::done) report.done++;
        if (step != KeyAccount::Step::change) continue;
        if (change == KeyChange::erase) {
            SIEVE_TRY(filter.erase(hash)); // cannot fail: the filter contains the key
        } else if (!filter.insert(hash)) {
            if (account != nullptr) SIEVE_TRY(account->no_room(key));
            report.full.push_back(key);
            continue;
        }
        report.done++;
        count(file, change != KeyChange::erase);
        if (account != nullptr) SIEVE_TRY(account->after(key));
    }
    return {};
}

// After an error, the keys that `report` counts stay changed.
Status change_difference(const sieve_lookup& lookup, sieve_file& file, ChangeableFilter& filter,
                         const KeySet& removed, const KeySet& added, DifferenceReport& report) {
    const auto hash_of = [&](const KeySet& keys, std::size_t i) {
        const sieve_key key = keys.at(i);
        return sieve_hash_key(&key, lookup.hash_key, lookup.fields);
    };
    for (std::size_t i = 0; i < removed.size(); i++) {
        if (!filter.erase(hash_of(removed, i))) {
            report.absent++;
            continue;
        }
        report.done++;
        count(file, false);
    }
    for (std::size_t i = 0; i < added.size(); i++) {
        if (!filter.insert(hash_of(added, i))) {
            report.no_room++;
            continue;
        }
        report.done++;
        count(file, true);
    }
    return {};
}

} // namespace

Result<KeyChangeReport> change_keys(const sieve_lookup& lookup, sieve_file& file,
                                    std::span<sieve_line> filter, const KeySet& keys, KeyChange change,
                                    const Progress& progress, KeyAccount* account) {
    SIEVE_ASSIGN(const std::unique_ptr<ChangeableFilter> changeable,
                 kind_of(lookup).open_for_change(lookup, filter));
    KeyChangeReport report;
    const Status all = without_throwing(
        [&] { return change_each(lookup, file, *changeable, keys, change, progress, account, report); });
    report.keys = file.keys;
    report.expected_fpr = changeable->expected_fpr();
    if (report.done > 0) store(file.expected_fpr, std::bit_cast<std::uint64_t>(report.expected_fpr));
    if (all) return report;
    if (report.done == 0) return tl::unexpected(all.error());
    return unfinished(change == KeyChange::erase ? "some keys were deleted, not all"
                                                 : "some keys were inserted, not all",
                      all.error());
}

Result<DifferenceReport> apply_difference(const sieve_lookup& lookup, sieve_file& file,
                                          std::span<sieve_line> filter, const KeySet& removed,
                                          const KeySet& added, bool rate) {
    SIEVE_ASSIGN(const std::unique_ptr<ChangeableFilter> changeable,
                 kind_of(lookup).open_for_change(lookup, filter));
    DifferenceReport report;
    const Status all = without_throwing(
        [&] { return change_difference(lookup, file, *changeable, removed, added, report); });
    report.keys = file.keys;
    if (!all && report.done == 0) return tl::unexpected(all.error());
    if (!all) return unfinished("a part of the keys was changed, not all", all.error());
    if (rate) {
        report.expected_fpr = changeable->expected_fpr();
        store(file.expected_fpr, std::bit_cast<std::uint64_t>(*report.expected_fpr));
    }
    return report;
}

} // namespace sieve
