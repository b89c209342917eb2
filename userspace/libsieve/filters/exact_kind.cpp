// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/exact_kind.hpp"

#include <fmt/core.h>

namespace sieve {

Result<std::unique_ptr<KindBuilder>> ExactKind::builder(const KindOptions&) const {
    return invalid_request(fmt::format("kind {} is exact and not built from hashes", facts().name));
}

Status ExactKind::for_each_range(const sieve_lookup&, std::span<const sieve_line>,
                                 const std::function<void(const AddressRange&)>&) const {
    return bad_input(fmt::format("kind {} does not list its addresses", facts().name));
}

} // namespace sieve
