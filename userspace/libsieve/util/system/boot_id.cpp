// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/boot_id.hpp"

#include "libsieve/util/system/small_file.hpp"

namespace sieve {

std::string boot_id() {
    const std::string text = small_file_or_nothing("/proc/sys/kernel/random/boot_id", 64);
    return text.substr(0, text.find('\n'));
}

} // namespace sieve
