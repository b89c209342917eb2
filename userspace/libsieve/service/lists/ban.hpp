// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Bans that people and programs give by hand, and what changes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

struct Ban {
    Time since{};
    Time until = never;
    std::string reason{}; // at most longest_reason bytes, any but control characters

    [[nodiscard]] bool is_over(Time now) const { return until <= now; }
    [[nodiscard]] friend bool operator==(const Ban&, const Ban&) = default;
};

inline constexpr std::size_t longest_reason = 255;

enum class BanStep : std::uint8_t {
    add,    // or give a ban that is there another end and reason
    remove, // one that is not there is none to remove
    flush,  // all go, or all with this reason
};

struct BanChange {
    BanStep step = BanStep::add;
    Prefix prefix{}; // not of a flush
    Ban ban{};       // of an addition; of a flush, its reason

    [[nodiscard]] friend bool operator==(const BanChange&, const BanChange&) = default;
};

using Bans = std::unordered_map<Prefix, Ban, PrefixHash>;

void change_bans(Bans& bans, const BanChange& change);
// The changes that make these bans of none, in no particular order.
[[nodiscard]] std::vector<BanChange> additions(const Bans& bans);

// Changes as bytes, for files and sockets, a multiple of record_step; and back. Nothing: they are none.
[[nodiscard]] std::string bytes_of(const std::vector<BanChange>& changes);
[[nodiscard]] std::optional<std::vector<BanChange>> ban_changes_of(std::string_view bytes);

// "192.0.2.7" or "192.0.2.0/24"; bits beyond the length are cut off. bad_input for anything else.
[[nodiscard]] Result<Prefix> parse_banned(std::string_view text);

// bad_input for a reason that is too long or has control characters.
[[nodiscard]] Status check_reason(std::string_view reason);

// A text as `ipset save` prints it and `ipset restore` takes it, or with an address or a prefix a line:
//
//     create SET TYPE ...      left out, as COMMIT is
//     add [SET] X [timeout SECONDS] [comment "REASON"]
//     del [SET] X
//     flush [SET]
//     X
//     # a comment
//
// A timeout of 0, or none, means without an end, unless `usual` says another one. bad_input, with `name` and
// the number of the line: a line that is none of these.
[[nodiscard]] Result<std::vector<BanChange>> parse_ban_text(std::string_view text, const std::string& name,
                                                            const Ban& usual);

} // namespace sieve::service::live
