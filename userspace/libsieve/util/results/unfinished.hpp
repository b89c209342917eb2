// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Errors after a change was made: from the point of no return on, no error may say that nothing was changed.
#pragma once

#include <exception>
#include <string_view>
#include <utility>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// The error (of kind unfinished) of a change that was made and then failed with `why`. `what_holds` is a
// sentence that says what is in force and what is left to do. Never throws: if memory for the text is
// lacking, the text is shorter.
[[nodiscard]] tl::unexpected<Error> unfinished(std::string_view what_holds, const Error& why) noexcept;

// The error (of kind unfinished) of a request after which even reading the state failed.
[[nodiscard]] tl::unexpected<Error> outcome_unknown(std::string_view what, const Error& why) noexcept;

// Calls `work`, which returns a Result. If `work` throws because memory is short, returns an error.
template <class Work>
[[nodiscard]] auto without_throwing(Work&& work) -> decltype(work()) {
    try {
        return std::forward<Work>(work)();
    } catch (const std::exception&) {
        return tl::unexpected(
            Error{ErrorKind::out_of_memory, "out of memory", {}}); // short enough to need no allocation
    }
}

} // namespace sieve
