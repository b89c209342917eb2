// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Files that hold a password, a key or the like. They are read only if they are kept from others, and no
// message repeats what they hold.
#pragma once

#include <cstddef>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// The content; `what` says what it should be, such as "a key (PEM)". bad_input naming the file unless it is
// a regular one that belongs to root or to this process's user, that nobody else may write and not everybody
// may read, and that has 1 to `most` bytes.
[[nodiscard]] Result<std::string> read_secret_file(const std::string& path, const std::string& what,
                                                   std::size_t most);

// The same for a file of one line, which is returned without its end. bad_input also for further lines and
// for control characters.
[[nodiscard]] Result<std::string> read_secret_line(const std::string& path, const std::string& what);

} // namespace sieve
