// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Errors as values. Whatever can fail returns a Result; nothing public throws.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace sieve {

// What the process answers with; the contract of every program here.
enum class Exit : int {
    done = 0,
    no = 1,            // the question was understood and the answer is no
    usage = 2,         // the command line makes no sense
    bad_input = 3,     // a feed, an image, a capture or a key is wrong; nothing was changed
    kernel_refused = 4 // the kernel, or our rights in it, said no; nothing was changed
};

// One sentence that a person can act on: where, what was expected, what to do; and the exit code it leads to.
struct Error {
    Exit exit = Exit::bad_input;
    std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> bad_input(std::string message) {
    return tl::unexpected(Error{Exit::bad_input, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> usage_error(std::string message) {
    return tl::unexpected(Error{Exit::usage, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> kernel_refused(std::string message) {
    return tl::unexpected(Error{Exit::kernel_refused, std::move(message)});
}

// The text of an errno value, thread-safe.
[[nodiscard]] std::string errno_text(int error);

} // namespace sieve

// Returns the error of a failed Result from the calling function; else carries on.
#define SIEVE_TRY(expression)                                                                                \
    do {                                                                                                     \
        if (auto sieve_try_result = (expression); !sieve_try_result)                                         \
            return tl::unexpected(std::move(sieve_try_result.error()));                                      \
    } while (0)

#define SIEVE_CONCAT_(a, b) a##b
#define SIEVE_CONCAT(a, b) SIEVE_CONCAT_(a, b)
// Declares `variable` from a Result's value, or returns its error from the calling function.
#define SIEVE_ASSIGN(variable, expression)                                                                   \
    auto SIEVE_CONCAT(sieve_result_, __LINE__) = (expression);                                               \
    if (!SIEVE_CONCAT(sieve_result_, __LINE__))                                                              \
        return tl::unexpected(std::move(SIEVE_CONCAT(sieve_result_, __LINE__).error()));                     \
    variable = std::move(*SIEVE_CONCAT(sieve_result_, __LINE__))
