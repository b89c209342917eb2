// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads small files at paths where anything may be by now: a folder, a pipe, a file on a failing disk.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// The text of a regular file; nothing if nothing is at the path. Never waits for a pipe. A file of /proc,
// whose size is 0, is read to its end. Errors, which name the path: bad_input: it is no regular file, or it
// has more than `most` bytes; not_permitted: this process may not read it; kernel_refused: reading failed
// otherwise.
[[nodiscard]] Result<std::optional<std::string>> read_small_file(const std::string& path, std::size_t most);

// The same for a file that a host need not have, such as one of /proc: empty if it cannot be read either.
[[nodiscard]] std::string small_file_or_nothing(const std::string& path, std::size_t most);

// The rest of an open file, whose path is for messages. Errors as above.
[[nodiscard]] Result<std::string> read_small_file(int file, const std::string& path, std::size_t most);

} // namespace sieve
