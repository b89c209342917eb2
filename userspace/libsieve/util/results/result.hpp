// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Errors as values. Every public function that can fail returns a Result; none throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace sieve {

// The kind of error, for a caller that has to decide what to do next. Front ends map it to an exit code and
// to advice; the library knows neither.
enum class ErrorKind : std::uint8_t {
    // The question was understood, and the answer is no.
    no,           // a key is absent, no filter can be recommended
    not_attached, // no program of ours runs there (facts: interface, and a foreign program if one runs)
    no_such_set,  // facts: interface, set, in_force

    // An argument is wrong, or contradicts another one or what is in force. Nothing was changed.
    invalid_request,
    several_hooks, // the program runs at more than one hook, and none was named (facts: interface, hooks)
    // our program runs there in another mode or at another rank than asked for (facts: interface)
    attached_otherwise,
    needs_feed, // verification needs the set's keys, which an image does not have (facts: set, path)

    // An input is wrong. Nothing was changed.
    bad_input,     // a feed, an image, a capture or a key
    lockout,       // the table would drop an address that this host lives by (facts: interface, set)
    foreign_file,  // an output would replace a file of another kind
    fixed_keys,    // the set's kind or its verification does not let single keys change (facts: set)
    out_of_memory, // this process could not get the memory

    // The kernel refused, or the process lacks a privilege. Nothing was changed.
    kernel_refused,
    not_permitted,
    no_native_mode,    // the driver does not take the program, and no other mode was allowed
    foreign_program,   // a foreign program holds the hook (facts: interface, program, program_id)
    other_version,     // our program, but of another version of the control block (facts: interface)
    busy,              // another controller holds the lock
    unconfirmed,       // a change on probation must be confirmed or taken back first (facts: interface)
    changed_meanwhile, // what the request relied on has changed; a retry may succeed

    // All or part of the change was made, but something that follows it could not be done. The message says
    // what is in force and what is left to do.
    unfinished,

    // The change is rarely meant, and needs force (facts: interface, set). Nothing was changed. See
    // control/table_guard.hpp.
    wants_force,
};

// Details that advice can name. A detail that an error does not have is empty.
struct Facts {
    std::string interface {};
    std::string program{}; // the name of the foreign program
    std::uint32_t program_id = 0;
    std::string set{};
    std::vector<std::string> in_force{}; // the sets in force
    std::string path{};
    std::vector<std::string> hooks{};   // the hooks to choose from
    std::optional<std::size_t> input{}; // which of several inputs is to blame; the first is 0
};

// `message` is one sentence for a person: where, what was found, what was expected.
struct Error {
    ErrorKind kind = ErrorKind::bad_input;
    std::string message{};
    Facts facts{};
};

template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> failure(ErrorKind kind, std::string message, Facts facts = {}) {
    return tl::unexpected(Error{kind, std::move(message), std::move(facts)});
}
[[nodiscard]] inline tl::unexpected<Error> bad_input(std::string message) {
    return failure(ErrorKind::bad_input, std::move(message));
}
[[nodiscard]] inline tl::unexpected<Error> invalid_request(std::string message) {
    return failure(ErrorKind::invalid_request, std::move(message));
}
[[nodiscard]] inline tl::unexpected<Error> kernel_refused(std::string message) {
    return failure(ErrorKind::kernel_refused, std::move(message));
}

// The text of an errno value, thread-safe.
[[nodiscard]] std::string errno_text(int error);

} // namespace sieve

// Returns from the calling function with the error of a failed Result; otherwise carries on.
#define SIEVE_TRY(expression)                                                                                \
    do {                                                                                                     \
        if (auto sieve_try_result = (expression); !sieve_try_result)                                         \
            return tl::unexpected(std::move(sieve_try_result.error()));                                      \
    } while (0)

#define SIEVE_CONCAT_(a, b) a##b
#define SIEVE_CONCAT(a, b) SIEVE_CONCAT_(a, b)
// Declares `variable` with a Result's value, or returns from the calling function with its error.
#define SIEVE_ASSIGN(variable, expression)                                                                   \
    auto SIEVE_CONCAT(sieve_result_, __LINE__) = (expression);                                               \
    if (!SIEVE_CONCAT(sieve_result_, __LINE__))                                                              \
        return tl::unexpected(std::move(SIEVE_CONCAT(sieve_result_, __LINE__).error()));                     \
    variable = std::move(*SIEVE_CONCAT(sieve_result_, __LINE__))
