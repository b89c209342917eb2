// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The words of `set` and `add` that say what becomes of a set: action=pass, before=OTHER, last.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libsieve/control/table/edit_table.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::cli {

// A word, or its beginning up to the `=`.
struct EditWord {
    const char* name;
    const char* value; // what the help calls the value; null for a word without one
    bool places;       // it says where the set stands; `add` takes only these words
    const char* help;
};

[[nodiscard]] std::span<const EditWord> edit_words();

// Errors are of kind invalid_request and name the word.
[[nodiscard]] Result<control::SetEdit> parse_edit(const std::vector<std::string>& words);

// The place of a set that comes; the last one if no word is given.
[[nodiscard]] Result<control::Position> parse_position(const std::vector<std::string>& words);

} // namespace sieve::cli
