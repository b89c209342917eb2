// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/key_changes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <set>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve {

namespace {

using Words = std::array<std::uint64_t, SIEVE_KEY_WORDS>;

// An atomic store, because `status` may read the header at the same time.
void store(__u64& number, std::uint64_t value) {
    std::atomic_ref<__u64>(number).store(value, std::memory_order_relaxed);
}

// Counts a stored key, after each store, so that the number is right whenever this process dies.
void count_key(sieve_file& file, bool came) {
    store(file.keys, came ? file.keys + 1 : file.keys - (file.keys > 0 ? 1 : 0));
}

void count_change(sieve_file& file) {
    store(file.changes, file.changes + 1);
}

// The rules of KeyChange, for which only the filter counts.
KeyAccount::Step step_by_filter(KeyChange change, bool matches) {
    if (change != KeyChange::insert_again && matches == (change == KeyChange::insert))
        return KeyAccount::Step::told;
    return KeyAccount::Step::change;
}

// One filter, and one entry after another that goes in or out as a whole.
class Changing {
  public:
    Changing(sieve_file& file, ChangeableFilter& filter) : file_(file), filter_(filter) {}

    // The next entry, by the hashes of what is stored for it.
    void take(const sieve_key& entry, const StoredKeys& stored) {
        hashes_.clear();
        stored.for_each(entry, [&](const sieve_key& key) { hashes_.push_back(stored.hash(key)); });
    }

    [[nodiscard]] bool matches() const {
        return std::all_of(hashes_.begin(), hashes_.end(),
                           [&](const sieve_hash& hash) { return filter_.contains(hash); });
    }

    // False, with the filter as it was, if there is no room for all.
    [[nodiscard]] bool insert() {
        return all_or_none([&](const sieve_hash& hash) { return put(hash); },
                           [&](const sieve_hash& hash) { return take_out(hash); });
    }

    // False, with the filter as it was, if it does not hold all: some of what matched was never inserted.
    [[nodiscard]] bool erase() {
        return all_or_none([&](const sieve_hash& hash) { return take_out(hash); },
                           [&](const sieve_hash& hash) { return put(hash); });
    }

  private:
    bool put(const sieve_hash& hash) {
        if (!filter_.insert(hash)) return false;
        count_key(file_, true);
        return true;
    }
    bool take_out(const sieve_hash& hash) {
        if (!filter_.erase(hash)) return false;
        count_key(file_, false);
        return true;
    }

    // Undoing cannot fail: a key that was just inserted can be deleted, and one that was just deleted has
    // room.
    template <class Do, class Undo>
    bool all_or_none(const Do& make, const Undo& undo) {
        for (std::size_t done = 0; done < hashes_.size(); done++) {
            if (make(hashes_[done])) continue;
            while (done > 0) undo(hashes_[--done]);
            return false;
        }
        count_change(file_);
        return true;
    }

    sieve_file& file_;
    ChangeableFilter& filter_;
    std::vector<sieve_hash> hashes_;
};

// After an error, the keys that `report` counts stay changed.
Status change_each(const StoredKeys& stored, Changing changing, std::span<const sieve_key> entries,
                   KeyChange change, const Progress& progress, KeyAccount* account, KeyChangeReport& report) {
    std::set<Words> seen;
    for (std::size_t i = 0; i < entries.size(); i++) {
        if (progress && (i & 0xfff) == 0)
            progress(change == KeyChange::erase ? "deleting" : "inserting",
                     static_cast<double>(i) / static_cast<double>(entries.size()));
        const sieve_key& entry = entries[i];
        Words words;
        std::copy(std::begin(entry.word), std::end(entry.word), words.begin());
        if (!seen.insert(words).second) {
            report.repeated++;
            continue;
        }
        changing.take(entry, stored);
        const bool matches = changing.matches();
        KeyAccount::Step step = step_by_filter(change, matches);
        if (account != nullptr) {
            SIEVE_ASSIGN(step, account->before(entry, matches));
        }
        if (step == KeyAccount::Step::told) report.told.push_back(entry);
        if (step == KeyAccount::Step::full) report.full.push_back(entry);
        if (step == KeyAccount::Step::done) report.done++;
        if (step != KeyAccount::Step::change) continue;
        const bool erases = change == KeyChange::erase;
        if (!(erases ? changing.erase() : changing.insert())) {
            if (account != nullptr) SIEVE_TRY(account->no_room(entry));
            (erases ? report.told : report.full).push_back(entry);
            continue;
        }
        report.done++;
        if (account != nullptr) SIEVE_TRY(account->after(entry));
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
        count_key(file, false);
        count_change(file);
    }
    for (std::size_t i = 0; i < added.size(); i++) {
        if (!filter.insert(hash_of(added, i))) {
            report.no_room++;
            continue;
        }
        report.done++;
        count_key(file, true);
        count_change(file);
    }
    return {};
}

} // namespace

Result<KeyChangeReport> change_keys(const StoredKeys& stored, const sieve_lookup& lookup, sieve_file& file,
                                    std::span<sieve_line> filter, std::span<const sieve_key> entries,
                                    KeyChange change, const Progress& progress, KeyAccount* account) {
    SIEVE_ASSIGN(const std::unique_ptr<ChangeableFilter> changeable,
                 kind_of(lookup).open_for_change(lookup, filter));
    KeyChangeReport report;
    const Status all = without_throwing([&] {
        return change_each(stored, Changing(file, *changeable), entries, change, progress, account, report);
    });
    report.keys = file.keys;
    report.expected_fpr =
        rate_of_probes(changeable->expected_fpr(), std::max<std::uint32_t>(1, lookup.probes));
    if (report.done > 0) store(file.expected_fpr, std::bit_cast<std::uint64_t>(report.expected_fpr));
    if (all) return report;
    if (report.done == 0) return tl::unexpected(all.error());
    return unfinished(change == KeyChange::erase ? "some keys were deleted, not all"
                                                 : "some keys were inserted, not all",
                      all.error());
}

Result<KeyChangeReport> change_keys(const sieve_lookup& lookup, sieve_file& file,
                                    std::span<sieve_line> filter, const KeySet& keys, KeyChange change,
                                    const Progress& progress, KeyAccount* account) {
    std::vector<sieve_key> entries(keys.size());
    for (std::size_t i = 0; i < keys.size(); i++) entries[i] = keys.at(i);
    return change_keys(StoredKeys(lookup, {}), lookup, file, filter, entries, change, progress, account);
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
