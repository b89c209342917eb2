// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What to say of an exception that ended a piece of the daemon's work, but not the daemon.
#pragma once

#include <exception>
#include <string>

#include "libsieve/util/results/out_of_memory.hpp"

namespace sieve::service {

[[nodiscard]] inline std::string why_broken_off(const std::exception& error) {
    return is_out_of_memory(error) ? std::string("there is not enough memory")
                                   : std::string("internal error, please report it: ") + error.what();
}

} // namespace sieve::service
