// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A live set's rebuild from its order to its end, for who can wait.
#pragma once

#include <utility>

#include "libsieve/service/live/live_set.hpp"

namespace sieve::test {

inline Result<service::live::LiveChange> rebuild(service::live::LiveSet& set,
                                                 const service::SandboxSettings& sandbox) {
    SIEVE_ASSIGN(service::live::RebuildOrder order, set.begin_rebuild());
    Result<Image> image = service::live::build_live_image(std::move(order), sandbox);
    if (image) return set.finish_rebuild(std::move(*image));
    set.abandon_rebuild();
    return tl::unexpected(std::move(image.error()));
}

} // namespace sieve::test
