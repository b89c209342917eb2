// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/key_notes.hpp"

#include <algorithm>

#include <sieve/exact.h>
#include <sieve/inserted.h>

namespace sieve::control {

using Step = KeyAccount::Step;

Result<std::optional<kernel::KeyNote>> KeyNotes::ended(const sieve_key& key) const {
    if (!inserted_) return std::nullopt;
    return inserted_->find(key);
}

// Forgets everything about a key that is no member.
Status KeyNotes::forget(const sieve_key& key) {
    if (exact_) SIEVE_TRY(exact_->erase(key));
    if (inserted_) SIEVE_TRY(inserted_->erase(key));
    return {};
}

// A member is inserted once more: only its end may change.
Result<Step> KeyNotes::set_end(const sieve_key& key, const kernel::KeyNote& now) {
    if (end_ == 0) {
        SIEVE_TRY(inserted_->erase(key));
    } else {
        SIEVE_ASSIGN(const bool noted,
                     inserted_->put(key, {.end = std::max(now.end, end_), .state = SIEVE_INSERTED_IN}));
        if (!noted) return Step::full; // cannot happen: the key was there
    }
    if (end_ == 0 || end_ > now.end) other_end_++;
    return Step::done;
}

Result<Step> KeyNotes::before(const sieve_key& key, bool matches) {
    if (exact_) return before_verified(key, matches);
    return doing_ == Doing::insert ? insert_plain(key, matches) : take_out_plain(key, matches);
}

// The exact set tells for certain what is a member, whatever the filter says.
Result<Step> KeyNotes::before_verified(const sieve_key& key, bool matches) {
    SIEVE_ASSIGN(const std::optional<kernel::KeyNote> member, exact_->find(key));
    const bool sure = member && member->state == SIEVE_EXACT_IN;
    if (doing_ == Doing::insert) return insert_verified(key, member.has_value(), sure);
    if (!sure || !matches) {
        // Without a sure entry the filter stays as it is. A key that it holds too much does no harm, since
        // verification rejects it.
        SIEVE_TRY(forget(key));
        return member || doing_ == Doing::expire ? Step::done : Step::told;
    }
    SIEVE_ASSIGN(const bool noted, exact_->put(key, {.state = SIEVE_EXACT_UNSURE}));
    return noted ? Step::change : Step::full;
}

Result<Step> KeyNotes::insert_verified(const sieve_key& key, bool known, bool sure) {
    SIEVE_ASSIGN(const std::optional<kernel::KeyNote> note, ended(key));
    if (sure) return note ? set_end(key, *note) : Result<Step>(Step::told);
    // The end comes first: a key that is in may not lack it.
    if (end_ != 0) {
        SIEVE_ASSIGN(const bool noted, inserted_->put(key, {.end = end_, .state = SIEVE_INSERTED_IN}));
        if (!noted) return Step::full;
    } else if (note) {
        SIEVE_TRY(inserted_->erase(key));
    }
    // The exact set comes before the filter: as soon as the filter matches, verification agrees.
    SIEVE_ASSIGN(const bool room, exact_->put(key, {.state = SIEVE_EXACT_UNSURE}));
    if (room) return Step::change;
    if (!known) SIEVE_TRY(forget(key));
    return Step::full;
}

Result<Step> KeyNotes::insert_plain(const sieve_key& key, bool matches) {
    SIEVE_ASSIGN(const std::optional<kernel::KeyNote> note, ended(key));
    // A key that did not match before and matches now is in, although its controller died before it said so.
    if (note && !again_ && matches && note->state != SIEVE_INSERTED_UNSURE) return set_end(key, *note);
    if (matches && !again_) return Step::told;
    if (end_ == 0) {
        if (note && !matches) SIEVE_TRY(inserted_->erase(key)); // the note of a key that never came
        return Step::change;
    }
    SIEVE_ASSIGN(const bool noted, inserted_->put(key, {.end = end_, .state = SIEVE_INSERTED_COMING}));
    return noted ? Step::change : Step::full;
}

Result<Step> KeyNotes::take_out_plain(const sieve_key& key, bool matches) {
    SIEVE_ASSIGN(const std::optional<kernel::KeyNote> note, ended(key));
    if (!matches) {
        if (note) SIEVE_TRY(inserted_->erase(key)); // it was taken out, or never came
        return doing_ == Doing::expire ? Step::done : Step::told;
    }
    if (!note) return doing_ == Doing::expire ? Step::done : Step::change;
    if (doing_ == Doing::expire && note->state == SIEVE_INSERTED_UNSURE) {
        SIEVE_TRY(inserted_->erase(key));
        unsure_++;
        return Step::done;
    }
    SIEVE_ASSIGN(const bool noted, inserted_->put(key, {.end = note->end, .state = SIEVE_INSERTED_UNSURE}));
    return noted ? Step::change : Step::full; // it cannot be full: the key was there
}

Status KeyNotes::after(const sieve_key& key) {
    if (doing_ != Doing::insert) return forget(key);
    if (exact_) {
        SIEVE_TRY(exact_->put(key, {.state = SIEVE_EXACT_IN}));
        return {};
    }
    if (end_ == 0) return {};
    SIEVE_TRY(inserted_->put(key, {.end = end_, .state = SIEVE_INSERTED_IN}));
    return {};
}

Status KeyNotes::no_room(const sieve_key& key) {
    // A key that is inserted once more, for good, may have an end from before.
    return exact_ || end_ != 0 ? forget(key) : Status();
}

} // namespace sieve::control
