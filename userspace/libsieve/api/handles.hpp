// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the C interface's opaque objects hold, and how a Result becomes an answer in C.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/api/libsieve.h"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/filters/kinds/plan.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/out_of_memory.hpp"
#include "libsieve/util/results/result.hpp"

struct libsieve_error {
    int kind;
    std::string message;
};

struct libsieve_keys {
    sieve::Members members;
};

struct libsieve_image {
    sieve::Image image;
};

struct libsieve_plan {
    sieve::Plan plan;
};

struct libsieve_table {
    sieve::control::TableSpec spec{.sets = {}, .replace = true};
    bool allow_lockout = false;
    std::vector<sieve::control::HostAddress> protect; // beside those that the host lives by
    std::chrono::seconds probation{0};
};

struct libsieve_key_list {
    sieve::control::KeyList list;
    std::vector<std::string> texts; // of the keys
};

namespace sieve::api {

// Passes the error to the caller, who frees it, if the caller asked for it. Always returns false.
bool fail(libsieve_error** error, const Error& problem);
bool fail(libsieve_error** error, int kind, const char* message) noexcept;

// An argument that a function cannot do without.
struct Needed {
    const char* name;
    const void* pointer;
};

// invalid_request if one of them is null.
[[nodiscard]] Status check_needed(const char* function, std::initializer_list<Needed> arguments);

// Runs `body`, which returns a Status, unless an argument is missing. No exception crosses the C interface:
// if memory or threads run out, the answer is an error of that kind.
template <class Body>
bool guarded(libsieve_error** error, std::initializer_list<Needed> arguments, Body&& body,
             const char* function = __builtin_FUNCTION()) noexcept {
    try {
        Status status = check_needed(function, arguments);
        if (status) status = std::forward<Body>(body)();
        return status || fail(error, status.error());
    } catch (const std::exception& problem) {
        if (is_out_of_memory(problem))
            return fail(error, LIBSIEVE_ERROR_MEMORY, "there is not enough memory");
        return fail(error, LIBSIEVE_ERROR_INVALID, problem.what());
    }
}

// Copies as much of `from` as fits into the caller's structure, which begins with its size.
template <class T>
void fill(T* into, T from) {
    const std::size_t room = std::min(into->size, sizeof(T));
    from.size = into->size;
    std::memcpy(into, &from, room);
}

// invalid_request for a size that is none: nobody has initialised the structure.
[[nodiscard]] Status check_size(std::size_t size);

// The caller's options in a structure of today's size. Members that an older caller does not know are zero,
// and so must be those of a newer caller that this library does not know: what they ask for is not left out
// in silence. invalid_request otherwise.
template <class T>
[[nodiscard]] Result<T> at_full_size(const T* given) {
    T options{};
    if (given != nullptr) {
        SIEVE_TRY(check_size(given->size));
        const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
        for (std::size_t i = sizeof(T); i < given->size; i++)
            if (bytes[i] != 0)
                return invalid_request("`options` has a member that this version of libsieve does not know");
        std::memcpy(&options, given, std::min(given->size, sizeof(T)));
    }
    options.size = sizeof(T);
    return options;
}

} // namespace sieve::api
