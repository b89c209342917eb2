// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is known about single keys of a set beside its filter: the exact set of a verified one, and the keys
// that were inserted for a time. Keeps both in step with the filter, so that no member is ever missed,
// whenever the controller dies.
//
// A filter cannot tell a member from a false positive, so deleting a key that is not in it may remove another
// key. Therefore each change is noted before it is made (sieve/inserted.h, sieve/exact.h). If the note of an
// earlier controller leaves open whether a key is in the filter, the filter is left as it is: prefer a false
// positive to a missed member.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/control/access/kernel.hpp"

namespace sieve::control {

class KeyNotes final : public KeyAccount {
  public:
    // `exact`: of a verified set, else null. `inserted`: null if no key was ever inserted for a time.
    KeyNotes(std::unique_ptr<RunningKeys> exact, std::unique_ptr<RunningKeys> inserted)
        : exact_(std::move(exact)), inserted_(std::move(inserted)) {}

    // What is done to the keys that follow. `end`: of keys that are inserted, as in KeyNote; 0: for good. A
    // key that has an end already keeps the later one; inserted for good, it loses its end. `again`: only for
    // good, as in KeyChange::insert_again.
    void insert(std::uint64_t end, bool again) {
        end_ = end;
        again_ = again;
        doing_ = Doing::insert;
    }
    void erase() { doing_ = Doing::erase; }
    void expire() { doing_ = Doing::expire; }

    [[nodiscard]] Result<Step> before(const sieve_key& key, bool matches) override;
    [[nodiscard]] Status after(const sieve_key& key) override;
    [[nodiscard]] Status no_room(const sieve_key& key) override;

    // Keys whose end changed while they stayed in the filter.
    [[nodiscard]] std::uint64_t other_end() const { return other_end_; }
    // Ended keys that stay in the filter, since nobody knows whether they are in it.
    [[nodiscard]] std::uint64_t unsure() const { return unsure_; }

  private:
    enum class Doing : std::uint8_t { insert, erase, expire };

    [[nodiscard]] Result<Step> before_verified(const sieve_key& key, bool matches);
    [[nodiscard]] Result<Step> insert_verified(const sieve_key& key, bool known, bool sure);
    [[nodiscard]] Result<Step> insert_plain(const sieve_key& key, bool matches);
    [[nodiscard]] Result<Step> take_out_plain(const sieve_key& key, bool matches);
    [[nodiscard]] Result<std::optional<kernel::KeyNote>> ended(const sieve_key& key) const;
    [[nodiscard]] Result<Step> set_end(const sieve_key& key, const kernel::KeyNote& now);
    [[nodiscard]] Status forget(const sieve_key& key);

    std::unique_ptr<RunningKeys> exact_, inserted_;
    Doing doing_ = Doing::insert;
    std::uint64_t end_ = 0;
    bool again_ = false;
    std::uint64_t other_end_ = 0, unsure_ = 0;
};

} // namespace sieve::control
