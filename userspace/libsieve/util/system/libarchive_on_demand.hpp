// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// libarchive, opened on demand.
#pragma once

#include "libsieve/util/system/library_on_demand.hpp"

namespace sieve {

inline constexpr LibraryOnDemand libarchive("libarchive.so.13", "libarchive13");

} // namespace sieve
