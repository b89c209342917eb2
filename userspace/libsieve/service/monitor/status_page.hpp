// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A snapshot as one HTML page that needs nothing else: no script, no other file. It can be read on a phone,
// and in light and dark.
#pragma once

#include <string>
#include <vector>

#include "libsieve/service/monitor/snapshot.hpp"

namespace sieve::service::watching {

// What the page may load: only what it has in itself.
inline constexpr char status_page_policy[] =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

// `history` are the statistics's moments; `host` is the name of this machine.
[[nodiscard]] std::string status_page(const Snapshot& snapshot, const std::vector<Moment>& history,
                                      const std::string& host);

} // namespace sieve::service::watching
