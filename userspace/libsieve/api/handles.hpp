// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the C interface's opaque objects hold, and how a Result becomes an answer in C.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/api/libsieve.h"
#include "libsieve/control/host_addresses.hpp"
#include "libsieve/control/list_keys.hpp"
#include "libsieve/control/table_spec.hpp"
#include "libsieve/filters/plan.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/result.hpp"
#include "libsieve/util/shortage.hpp"

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
    sieve::control::TableSpec spec;
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

// Runs `body`, which returns a Status. No exception crosses the C interface: if memory or threads run out,
// the answer is an error of that kind.
template <class Body>
bool guarded(libsieve_error** error, Body&& body) noexcept {
    try {
        const Status status = std::forward<Body>(body)();
        return status || fail(error, status.error());
    } catch (const std::exception& problem) {
        if (is_shortage(problem)) return fail(error, LIBSIEVE_ERROR_MEMORY, "there is not enough memory");
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

// The caller's options in a structure of today's size. Members that an older caller does not know are zero.
template <class T>
T at_full_size(const T* given) {
    T options{};
    if (given != nullptr) std::memcpy(&options, given, std::min(given->size, sizeof(T)));
    options.size = sizeof(T);
    return options;
}

} // namespace sieve::api
