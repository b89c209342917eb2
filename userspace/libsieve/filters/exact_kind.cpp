// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/exact_kind.hpp"

#include <fmt/core.h>

namespace sieve {

Result<std::unique_ptr<KindBuilder>> ExactKind::builder(const KindOptions&) const {
    return invalid_request(fmt::format("kind {} is exact and not built from hashes", facts().name));
}

} // namespace sieve
