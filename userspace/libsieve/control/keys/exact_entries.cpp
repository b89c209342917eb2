// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/exact_entries.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <sieve/exact.h>

#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/key_order.hpp"

namespace sieve::control {

Result<std::optional<kernel::KeyNote>> ExactEntries::find(const sieve_key& entry) {
    return exact_->find(marked_entry(entry));
}

Result<bool> ExactEntries::is_entry(const sieve_key& prefix) {
    SIEVE_ASSIGN(const std::optional<kernel::KeyNote> note, find(prefix));
    return note.has_value();
}

Result<bool> ExactEntries::put(const sieve_key& entry, const kernel::KeyNote& note) {
    SIEVE_ASSIGN(const bool known, is_entry(entry));
    SIEVE_ASSIGN(bool room, exact_->put(marked_entry(entry), note));
    // An entry that is in for certain has its stored keys.
    if (!room || (known && note.state == SIEVE_EXACT_IN)) return room;
    std::vector<sieve_key> keys;
    stored_.for_each(entry, [&](const sieve_key& key) { keys.push_back(key); });
    for (const sieve_key& key : keys) {
        SIEVE_ASSIGN(room, exact_->put(key, {.state = SIEVE_EXACT_IN}));
        if (room) continue;
        if (!known) SIEVE_TRY(erase(entry));
        return false;
    }
    return true;
}

// The stored keys of an entry, as a rectangle: so many of the source, in each of which are so many of the
// destination. What they have in common with another entry's is a smaller rectangle.
class ExactEntries::Shared {
  public:
    Shared(const sieve_key& entry, std::vector<sieve_key> keys, std::uint32_t fields)
        : entry_(entry), keys_(std::move(keys)), stays_(keys_.size()), fields_(fields),
          own_(form_of(entry, fields)), probe_(form_of(keys_.front(), fields)),
          row_(std::uint64_t{1} << (probe_.destination - own_.destination)) {}

    [[nodiscard]] const EntryForm& probe() const { return probe_; }

    // How many other entries of that form may have stored keys in common with this one; calls visit(other)
    // for each of them.
    [[nodiscard]] std::uint64_t count(const EntryForm& form) const {
        return keys_.size() / (sources_with(form) * destinations_with(form));
    }
    template <class Visit>
    Status for_each(const EntryForm& form, const Visit& visit) const {
        for (std::uint64_t s = 0; s < keys_.size() / row_; s += sources_with(form))
            for (std::uint64_t d = 0; d < row_; d += destinations_with(form)) {
                const sieve_key other = cut_entry(keys_[s * row_ + d], form, fields_);
                if (!same_key(other, entry_)) SIEVE_TRY(visit(other));
            }
        return {};
    }

    // Whether another entry under the same probe has stored keys in common with this one.
    [[nodiscard]] bool overlaps(const sieve_key& other) const {
        const EntryForm form = form_of(other, fields_);
        const EntryForm both{std::min(own_.source, form.source), std::min(own_.destination, form.destination),
                             probe_.transport};
        return same_key(cut_entry(entry_, both, fields_), cut_entry(other, both, fields_)) &&
               !same_key(entry_, other);
    }
    // The stored keys that such an entry has in common with this one stay.
    void keep(const sieve_key& other) {
        const EntryForm form = form_of(other, fields_);
        const auto behind = [&](int word, std::uint32_t mine, std::uint32_t theirs, std::uint32_t longest) {
            if (theirs <= mine) return std::uint64_t{0};
            const uint128 distance = address_number(other.word[word], other.word[word + 1]) -
                                     address_number(entry_.word[word], entry_.word[word + 1]);
            return static_cast<std::uint64_t>(distance >> (address_bits - longest));
        };
        const std::uint64_t first = behind(0, own_.source, form.source, probe_.source);
        const std::uint64_t in_row = behind(2, own_.destination, form.destination, probe_.destination);
        for (std::uint64_t s = first; s < first + sources_with(form); s++)
            std::fill_n(stays_.begin() + static_cast<std::ptrdiff_t>(s * row_ + in_row),
                        destinations_with(form), true);
    }
    [[nodiscard]] std::vector<sieve_key> rest() const {
        std::vector<sieve_key> rest;
        for (std::size_t i = 0; i < keys_.size(); i++)
            if (!stays_[i]) rest.push_back(keys_[i]);
        return rest;
    }

  private:
    [[nodiscard]] std::uint64_t sources_with(const EntryForm& form) const {
        return std::uint64_t{1} << (probe_.source - std::max(own_.source, form.source));
    }
    [[nodiscard]] std::uint64_t destinations_with(const EntryForm& form) const {
        return std::uint64_t{1} << (probe_.destination - std::max(own_.destination, form.destination));
    }

    sieve_key entry_;
    std::vector<sieve_key> keys_;
    std::vector<bool> stays_;
    std::uint32_t fields_;
    EntryForm own_, probe_;
    std::uint64_t row_;
};

Result<std::vector<sieve_key>> ExactEntries::keys_of_nobody_else(const sieve_key& entry) {
    std::vector<sieve_key> keys;
    stored_.for_each(entry, [&](const sieve_key& key) { keys.push_back(key); });
    if (keys.empty()) return keys;
    // An entry that is in has all its stored keys in the map.
    const auto most_bits = static_cast<std::uint32_t>(std::bit_width(exact_->most()));
    const std::vector<EntryForm> forms = stored_.forms_under(keys.front(), most_bits);
    Shared shared(entry, std::move(keys), stored_.fields());
    std::uint64_t questions = 0;
    for (const EntryForm& form : forms) questions += shared.count(form);
    if (questions > exact_->most() / 2) { // reading the whole map takes less time
        SIEVE_ASSIGN(const std::vector<kernel::NotedKey> entries, all());
        for (const kernel::NotedKey& other : entries)
            if (stored_.probe_for(other.key) == shared.probe() && shared.overlaps(other.key))
                shared.keep(other.key);
        return shared.rest();
    }
    for (const EntryForm& form : forms)
        SIEVE_TRY(shared.for_each(form, [&](const sieve_key& other) -> Status {
            SIEVE_ASSIGN(const bool in, is_entry(other));
            if (in) shared.keep(other);
            return {};
        }));
    return shared.rest();
}

Status ExactEntries::erase(const sieve_key& entry) {
    SIEVE_ASSIGN(const bool known, is_entry(entry));
    if (!known) return {};
    SIEVE_ASSIGN(const std::vector<sieve_key> keys, keys_of_nobody_else(entry));
    for (const sieve_key& key : keys) SIEVE_TRY(exact_->erase(key));
    return exact_->erase(marked_entry(entry));
}

Result<std::vector<kernel::NotedKey>> ExactEntries::all() {
    SIEVE_ASSIGN(const std::vector<kernel::NotedKey> keys, exact_->all());
    std::vector<kernel::NotedKey> entries;
    for (const kernel::NotedKey& one : keys)
        if (const std::optional<sieve_key> entry = entry_marked_by(one.key))
            entries.push_back({*entry, one.note});
    return entries;
}

Result<std::unique_ptr<RunningKeys>> open_exact_entries(Filters& kernel, std::uint32_t exact_id,
                                                        const StoredKeys& stored) {
    SIEVE_ASSIGN(std::unique_ptr<RunningKeys> exact, kernel.open_exact(exact_id));
    if (!stored.of_prefixes()) return exact;
    return std::make_unique<ExactEntries>(std::move(exact), stored);
}

} // namespace sieve::control
