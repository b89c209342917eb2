// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The table in force as a wish, for verbs that change one set of it.
#pragma once

#include <cstddef>
#include <string>

#include "libsieve/kernel/hooks/hook.hpp"
#include "libsieve/kernel/set_table.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::cli {

struct WantedChange {
    kernel::WantedTable table; // everything as it is
    std::size_t index = 0;     // of the set in question
    bool verified = false;     // that set's matches are verified
};

// Exit::no, with the names there are, if no set has the name.
Result<WantedChange> wanted_with(const kernel::Hook& hook, const std::string& name);

} // namespace sieve::cli
