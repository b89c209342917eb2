// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Shared libraries that are opened when one of their functions is called first.
//
// A library such as libcurl or libarchive brings ten to twenty more, which take a good part of a command's
// start (docs/performance.md), and most commands need none of them. So no program is linked with such a
// library: a file NAME_on_demand.cpp defines those of its functions that the project calls, as the library's
// header declares them, by SIEVE_ON_DEMAND.
#pragma once

#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve {

class LibraryOnDemand {
  public:
    // The name of the file, as the dynamic linker finds it, and the Debian package that has it.
    constexpr LibraryOnDemand(const char* file, const char* package) : file_(file), package_(package) {}

    // Opens the library with all of its symbols, since a confined process cannot open files later. Error: it
    // is not installed, or there is no memory or no file descriptor for it now.
    [[nodiscard]] Status open() const;

    // The address of one of its functions. A process that cannot open the library ends, as one does whose
    // libraries are not there. Whoever must not end calls open() beforehand.
    [[nodiscard]] void* find(const char* name) const;

  private:
    const char* file_;
    const char* package_;
};

// The function of that name in the library.
#define SIEVE_ON_DEMAND(library, name)                                                                       \
    (*[] {                                                                                                   \
        static auto* const function = reinterpret_cast<decltype(&::name)>((library).find(#name));            \
        return function;                                                                                     \
    }())

} // namespace sieve
