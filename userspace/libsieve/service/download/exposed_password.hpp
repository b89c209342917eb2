// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Passwords that go over plain http to another host.
#pragma once

#include <string>
#include <vector>

#include "libsieve/service/download/http_access.hpp"

namespace sieve::service {

// For an operator, a sentence for each secret that anybody on the way can read. `what` else is sent, such as
// "the bouncer's key"; empty: nothing.
[[nodiscard]] std::vector<std::string> exposed_passwords(const std::string& url, const HttpAccess& access,
                                                         const std::string& what = {});

} // namespace sieve::service
