// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/filter_kind.hpp"

#include <fmt/core.h>

namespace sieve {

Result<std::unique_ptr<ChangeableFilter>> FilterKind::open_for_change(const sieve_lookup&,
                                                                      std::span<sieve_line>) const {
    return invalid_request(fmt::format("keys of kind {} cannot be changed one by one", facts_.name));
}

std::vector<KindOptions> FilterKind::forms() const {
    return {{.kind = facts_.number, .choices = facts_.choices.standard}};
}

std::string FilterKind::count_choices(std::uint32_t count) const {
    return fmt::format("{} {}", count, count == 1 ? facts_.choices.one : facts_.choices.many);
}

} // namespace sieve
