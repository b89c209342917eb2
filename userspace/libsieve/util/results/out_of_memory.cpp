// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/results/out_of_memory.hpp"

#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>

namespace sieve {

bool is_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
    if (const auto* system = dynamic_cast<const std::system_error*>(&error))
        return system->code().value() == ENOMEM || system->code().value() == EAGAIN;
    // oneTBB has no exception type of its own for this: src/tbb/rml_thread_monitor.h, handle_perror().
    return std::string_view(error.what()).starts_with("pthread_create");
}

} // namespace sieve
