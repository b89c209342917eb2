// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exit codes of our programs, and which error leads to which code. The library knows none of this.
#pragma once

#include "libsieve/util/result.hpp"

namespace sieve {

enum class Exit : int {
    done = 0,
    no = 1,             // the question was valid and the answer is no
    usage = 2,          // the command line makes no sense
    bad_input = 3,      // a feed, an image, a capture or a key is wrong; nothing was changed
    kernel_refused = 4, // the kernel, or our rights in it, said no; nothing was changed
    incomplete = 5,     // the work was done, but a later step was not, such as cleaning up or printing
};

[[nodiscard]] constexpr Exit exit_code(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::no:
    case ErrorKind::not_attached:
    case ErrorKind::no_such_set:
        return Exit::no;
    case ErrorKind::invalid_request:
    case ErrorKind::several_hooks:
    case ErrorKind::attached_otherwise:
    case ErrorKind::wants_force:
    case ErrorKind::needs_feed:
        return Exit::usage;
    case ErrorKind::bad_input:
    case ErrorKind::fixed_keys:
    case ErrorKind::lockout:
    case ErrorKind::out_of_memory:
        return Exit::bad_input;
    case ErrorKind::kernel_refused:
    case ErrorKind::not_permitted:
    case ErrorKind::no_native_mode:
    case ErrorKind::foreign_program:
    case ErrorKind::other_version:
    case ErrorKind::busy:
    case ErrorKind::unconfirmed:
    case ErrorKind::changed_meanwhile:
        return Exit::kernel_refused;
    case ErrorKind::unfinished:
        return Exit::incomplete;
    }
    return Exit::kernel_refused;
}

} // namespace sieve
