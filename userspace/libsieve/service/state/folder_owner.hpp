// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whose the state directory is. Whoever else may write there could have us load what he likes.
#pragma once

#include <sys/stat.h>

#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Whether this file is this process's user's, and nobody else may write to it.
[[nodiscard]] bool is_ours_alone(const struct stat& file);

// Error, bad_input: the state directory is not this process's user's, others may write to it, or it cannot be
// looked at.
[[nodiscard]] Status check_owner(const std::string& state);

} // namespace sieve::service
