// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What follows a change: from the point of no return on, no error may say that nothing was changed.
#pragma once

#include <exception>
#include <string_view>
#include <utility>

#include "libsieve/util/result.hpp"

namespace sieve {

// The error, of kind unfinished, of a change that was made and then met with `why`. `what_holds` is the
// sentence that tells what is in force and what is left to do. Never throws: without memory for the text it
// is shorter.
[[nodiscard]] tl::unexpected<Error> unfinished(std::string_view what_holds, const Error& why) noexcept;

// The error of kind unfinished of a request after which even asking what is so failed.
[[nodiscard]] tl::unexpected<Error> outcome_unknown(std::string_view what, const Error& why) noexcept;

// Calls `work`, which returns a Result; what it throws for want of memory becomes an error.
template <class Work>
[[nodiscard]] auto without_throwing(Work&& work) -> decltype(work()) {
    try {
        return std::forward<Work>(work)();
    } catch (const std::exception&) {
        return tl::unexpected(
            Error{ErrorKind::out_of_memory, "out of memory", {}}); // short: takes none itself
    }
}

} // namespace sieve
