// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Anonymous pages that end where memory without access begins.
//
// An image maps its lines itself, where AddressSanitizer does not look. A target that is linked with
// --wrap=mmap, --wrap=munmap and --wrap=madvise hands out lines whose last byte is the last one that may be
// read; their page's bytes before the first line are poisoned.
#pragma once

#include <cstddef>

namespace sieve::fuzz {

// True if such a block is in use; for a target that wants to know that none was left behind.
[[nodiscard]] bool guarded_pages_in_use();

} // namespace sieve::fuzz
