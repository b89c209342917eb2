// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From a set as an operator names it to the blob that is published.
#pragma once

#include <optional>

#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::fleet {

struct BlobSource {
    ManifestSet set{};
    UniqueFd content{}; // a file in memory
};

// An empty file that is nowhere but in memory.
[[nodiscard]] Result<UniqueFd> memory_file();

// An image is published as it is; a feed as an image that is built here, or as the feed itself. Nothing for
// `as`: an image as an image, a feed as a feed. A feed is read to its end in any case, so that no node gets
// one with a malformed line. Errors: those of reading and building; invalid_request for what only a node's
// configuration decides: verification, and how a published feed is built.
[[nodiscard]] Result<BlobSource> make_blob(const control::SetSpec& spec, std::optional<BlobKind> as,
                                           const control::Observer& observer);

} // namespace sieve::fleet
