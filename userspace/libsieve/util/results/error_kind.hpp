// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One descriptor an error kind. Exit codes, the error numbers of libsieve.h and what a child process may
// report come from here; the advice on a kind is the front end's (remedy.cpp).
#pragma once

#include <cstdint>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// What an error means to whoever asked. In all groups but the last, nothing was changed.
enum class ErrorGroup : std::uint8_t {
    no,         // the question was understood, and the answer is no
    request,    // an argument is wrong, or contradicts another one or what is in force
    input,      // an input is wrong
    kernel,     // the kernel refused, or the process lacks a privilege
    unfinished, // the change was made, and a later step was not
};

struct ErrorKindFacts {
    const char* name;
    ErrorGroup group;
};

[[nodiscard]] constexpr ErrorKindFacts facts_of(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::no:
        return {"no", ErrorGroup::no};
    case ErrorKind::not_attached:
        return {"not_attached", ErrorGroup::no};
    case ErrorKind::no_such_set:
        return {"no_such_set", ErrorGroup::no};
    case ErrorKind::invalid_request:
        return {"invalid_request", ErrorGroup::request};
    case ErrorKind::several_hooks:
        return {"several_hooks", ErrorGroup::request};
    case ErrorKind::attached_otherwise:
        return {"attached_otherwise", ErrorGroup::request};
    case ErrorKind::needs_feed:
        return {"needs_feed", ErrorGroup::request};
    case ErrorKind::wants_force:
        return {"wants_force", ErrorGroup::request};
    case ErrorKind::bad_input:
        return {"bad_input", ErrorGroup::input};
    case ErrorKind::lockout:
        return {"lockout", ErrorGroup::input};
    case ErrorKind::foreign_file:
        return {"foreign_file", ErrorGroup::input};
    case ErrorKind::fixed_keys:
        return {"fixed_keys", ErrorGroup::input};
    case ErrorKind::out_of_memory:
        return {"out_of_memory", ErrorGroup::input};
    case ErrorKind::kernel_refused:
        return {"kernel_refused", ErrorGroup::kernel};
    case ErrorKind::not_permitted:
        return {"not_permitted", ErrorGroup::kernel};
    case ErrorKind::no_native_mode:
        return {"no_native_mode", ErrorGroup::kernel};
    case ErrorKind::foreign_program:
        return {"foreign_program", ErrorGroup::kernel};
    case ErrorKind::other_version:
        return {"other_version", ErrorGroup::kernel};
    case ErrorKind::busy:
        return {"busy", ErrorGroup::kernel};
    case ErrorKind::unconfirmed:
        return {"unconfirmed", ErrorGroup::kernel};
    case ErrorKind::changed_meanwhile:
        return {"changed_meanwhile", ErrorGroup::kernel};
    case ErrorKind::unfinished:
        return {"unfinished", ErrorGroup::unfinished};
    }
    return {"unknown", ErrorGroup::kernel}; // of a process of another version
}

} // namespace sieve
