// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// URLs of lists: whether one can work, and what of it may be shown.
#pragma once

#include <string>

#include "libsieve/util/result.hpp"

namespace sieve::service {

// For messages and files: the URL without user, password and fragment; a query, which may hold a key, is
// "?...".
[[nodiscard]] std::string displayed_url(const std::string& url);

// bad_input unless it is an http or https URL with a host.
[[nodiscard]] Status check_url(const std::string& url);

} // namespace sieve::service
