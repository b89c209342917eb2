// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/results/result.hpp"

#include <system_error>

namespace sieve {

std::string errno_text(int error) {
    return std::generic_category().message(error < 0 ? -error : error);
}

} // namespace sieve
