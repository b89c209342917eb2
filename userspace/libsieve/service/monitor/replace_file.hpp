// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Writes a small file that only this run of the machine needs: whole or not at all for whoever reads it, but
// without waiting for the disk.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve::service::watching {

// Error: bad_input, with the path and what prevents it. What was there stays then.
[[nodiscard]] Status replace_file(const std::string& path, std::string_view content, mode_t mode = 0600);

} // namespace sieve::service::watching
