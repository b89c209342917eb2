// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A blob as a file that has its name only once its digest was found right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct Blob {
    std::string digest{}; // SHA-256
    std::uint64_t bytes = 0;
    std::string name{}; // in the store; empty: the digest
};

// Makes the file `path`, readable by its owner alone, on the disk when this returns. Until the blob is
// complete it is `path`.part; a later call goes on from there. `bring` writes to that file what it lacks;
// whoever it lets write must have closed the file when it returns. `name` names the blob in messages.
// bad_input: what `bring` says, the digest is wrong (then nothing of it is kept), or the disk is full. A
// `path` that is there is taken for complete.
[[nodiscard]] Status keep_blob(const Blob& blob, const std::string& path, const std::string& name,
                               const std::function<Status(int file)>& bring);

} // namespace sieve::fleet
