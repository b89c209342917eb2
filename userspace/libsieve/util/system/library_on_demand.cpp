// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/library_on_demand.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/core.h>

namespace sieve {

Status LibraryOnDemand::open() const {
    if (::dlopen(file_, RTLD_NOW | RTLD_LOCAL) == nullptr)
        return kernel_refused(
            fmt::format("{}; expected the library of Debian's package {}",
                        ::dlerror(), // NOLINT(concurrency-mt-unsafe): it is the thread's own
                        package_));
    return {}; // and it stays open
}

void* LibraryOnDemand::find(const char* name) const {
    // Opened already, it is only found.
    void* const library = ::dlopen(file_, RTLD_NOW | RTLD_LOCAL);
    void* const symbol = library != nullptr ? ::dlsym(library, name) : nullptr;
    if (symbol != nullptr) return symbol;
    // As the dynamic linker does before main() where a program is linked with a library that is not there.
    (void)std::fprintf(stderr, "%s: %s; expected the library of Debian's package %s\n",
                       program_invocation_short_name, ::dlerror(), // NOLINT(concurrency-mt-unsafe): likewise
                       package_);
    constexpr int library_missing = 127;
    std::_Exit(library_missing);
}

} // namespace sieve
