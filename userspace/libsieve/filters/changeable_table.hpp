// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A filter that lists its keys and lets them come and go. It lies in memory or in a running program's map.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <sieve/key.h>

#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

/// Returns once every lookup that was under way when it was called has ended. For a filter that nobody looks
/// into, it need not wait.
using WaitForLookups = std::function<Status()>;

/// When a key's membership ends, in nanoseconds of the clock that packets read (program_now()).
inline constexpr std::uint64_t never_ends = ~std::uint64_t{0};

/// How much later than asked for a key may end that is to live so many nanoseconds: a quarter of its life, or
/// a second.
[[nodiscard]] constexpr std::uint64_t tolerated_delay(std::uint64_t life) {
    constexpr std::uint64_t second = 1'000'000'000;
    return life / 4 > second ? life / 4 : second;
}

/// How much later it may end at the most, beside keys that live thousands of times as long: by as much as was
/// asked for, or by ten seconds.
[[nodiscard]] constexpr std::uint64_t longest_delay(std::uint64_t life) {
    constexpr std::uint64_t ten_seconds = 10'000'000'000;
    return life > ten_seconds ? life : ten_seconds;
}

/// What came of a change.
struct TableChangeResult {
    std::uint64_t removed = 0;
    std::uint64_t added = 0;
    std::vector<sieve_key> full{}; ///< keys that found no room
};

/// One writer at a time, and any number of lookups meanwhile: each lookup finds every key that is a member
/// from its beginning to its end. What the table says is certain: it holds its members and no other key.
///
/// The writer may die at any point. Then no member is missing, but the table is unsettled: a key may stand in
/// it twice, and its header may count wrongly.
///
/// In a table with marks, a key comes without one, and its mark stays as long as it does.
class ChangeableTable {
  public:
    virtual ~ChangeableTable() = default;

    /// Whether a writer died within a change. Then settle() comes before everything else.
    [[nodiscard]] virtual bool unsettled() const = 0;
    /// Makes an unsettled table one that has every key once, and the header say what there is. A key that was
    /// on its way in or out is in, or it is not. Errors: bad_input for lines that hold anything else; those
    /// of `wait`.
    [[nodiscard]] virtual Status settle(const WaitForLookups& wait) = 0;

    [[nodiscard]] bool contains(const sieve_key& key) const { return end_of(key).has_value(); }
    /// When the key's membership ends: never, or at a time to come. Nothing: the key is no member.
    [[nodiscard]] virtual std::optional<std::uint64_t> end_of(const sieve_key& key) const = 0;
    /// Whether a key that comes now can be given a life of so many nanoseconds, with no more than the
    /// tolerated delay, or the longest one if values have all the bits that there are. Else the table has to
    /// be built anew (Lifetimes).
    [[nodiscard]] virtual bool can_state(std::uint64_t life) const = 0;
    /// By how many nanoseconds an end may come later than asked for. 0: the table states no ends.
    [[nodiscard]] virtual std::uint64_t delay_of_ends() const = 0;
    /// Gives a member this end, or the next later one that the table can state. Error: it can state none.
    [[nodiscard]] virtual Status set_end(const sieve_key& key, std::uint64_t end) = 0;
    /// Marks a member, as a packet does that finds it. Nothing happens to another key, or without marks.
    virtual void mark(const sieve_key& key) = 0;
    /// Whether the table stays at a load where keys find room, if these come.
    [[nodiscard]] virtual bool has_room_for(const KeySet& keys) const = 0;
    /// Takes members out, then puts keys in that are no members, each of which is named once, with this end,
    /// which the table can state. Error of kind unfinished: `wait` failed. Then the table is unsettled.
    [[nodiscard]] virtual Result<TableChangeResult> change(const KeySet& removed, const KeySet& added,
                                                           const WaitForLookups& wait,
                                                           std::uint64_t end = never_ends) = 0;
    /// Makes room: takes out the keys that have ended. Returns how many. Errors as of change().
    [[nodiscard]] virtual Result<std::uint64_t> sweep(const WaitForLookups& wait) = 0;
};

} // namespace sieve
