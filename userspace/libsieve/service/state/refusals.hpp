// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists that a guard refused, and what a person answered: a file for each set in the state directory,
//
//     NAME.refused     the list that was refused last, and whether a person accepted it
//
// whole or not there. What accepts it (`xdp-sieve accept`) and what refuses it may write at the same time: a
// list counts as accepted only if it is the very one that the file describes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sieve/image.h>

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

struct RefusedList {
    std::string guard{};  // its name
    std::string why{};    // its message
    std::string digest{}; // of the list (list_digest.hpp)
    std::uint64_t entries = 0;
    std::uint64_t entries_before = 0;               // of the list in force
    std::array<double, SIEVE_FAMILIES> addresses{}; // that it covers, as far as that is known
    std::array<double, SIEVE_FAMILIES> addresses_before{};
    std::int64_t refused_at = 0; // in seconds since 1970
    bool accepted = false;

    // The digest alone is no defence against somebody who makes two lists of one digest on purpose. He gains
    // nothing by another list that is as long and covers as much: such a list no guard would refuse after it.
    [[nodiscard]] bool is_same_list(const RefusedList& other) const {
        return digest == other.digest && entries == other.entries && addresses == other.addresses;
    }
};

// The set whose refused list has this file name in the state directory; nothing for another file.
[[nodiscard]] std::optional<std::string> refused_set_of(std::string_view file_name);

// What was refused of the set, by the files of one folder; nothing if there is none that can be understood.
[[nodiscard]] std::optional<RefusedList> read_refusal(const std::string& folder, const std::string& set);
[[nodiscard]] Status write_refusal(const std::string& folder, const std::string& set,
                                   const RefusedList& list);
// Puts this in place of what is noted of the set. False: nothing is noted any more, and nothing was written.
[[nodiscard]] Result<bool> replace_refusal(const std::string& folder, const std::string& set,
                                           const RefusedList& list);
void remove_refusal(const std::string& folder, const std::string& set);
// The sets of which something was refused.
[[nodiscard]] std::vector<std::string> refused_sets(const std::string& folder);

} // namespace sieve::service
