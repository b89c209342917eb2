// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/event.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace sieve {

Result<UniqueFd> make_event() {
    UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event) return failure(ErrorKind::out_of_memory, "no eventfd: " + errno_text(errno));
    return event;
}

// Neither fails but for a full counter, which is set, and for an empty one, which is clear.
void set_event(int event) {
    const std::uint64_t one = 1;
    (void)!::write(event, &one, sizeof(one));
}

void clear_event(int event) {
    std::uint64_t count = 0;
    (void)!::read(event, &count, sizeof(count));
}

} // namespace sieve
