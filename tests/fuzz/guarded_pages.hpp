// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Anonymous pages that end right before inaccessible memory.
//
// An image maps its lines itself, so AddressSanitizer does not check them. In a target that is linked with
// --wrap=mmap, --wrap=munmap and --wrap=madvise, an image's last byte is the last readable byte. The page's
// bytes before the first line are poisoned.
#pragma once

#include <cstddef>

namespace sieve::fuzz {

// True if such a block is in use. A target asks this to see that none was left behind.
[[nodiscard]] bool guarded_pages_in_use();

} // namespace sieve::fuzz
