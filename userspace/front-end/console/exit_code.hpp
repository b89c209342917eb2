// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exit codes of our programs, and which error leads to which code. The library knows none of this.
#pragma once

#include "libsieve/util/results/error_kind.hpp"

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
    switch (facts_of(kind).group) {
    case ErrorGroup::no:
        return Exit::no;
    case ErrorGroup::request:
        return Exit::usage;
    case ErrorGroup::input:
        return Exit::bad_input;
    case ErrorGroup::kernel:
        return Exit::kernel_refused;
    case ErrorGroup::unfinished:
        return Exit::incomplete;
    }
    return Exit::kernel_refused;
}

} // namespace sieve
