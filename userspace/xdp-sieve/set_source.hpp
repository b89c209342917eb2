// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where a set comes from on the command line: an image, or a feed that is built on the way with the defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/build/set_builder.hpp"
#include "xdp-sieve/context.hpp"

namespace sieve::cli {

// True if the file begins like a filter image; false for feeds, "-" and whatever cannot be read.
bool looks_like_image(const std::string& path);

// Reads the feeds and builds their set. With --verbose says what was skipped and why.
Result<BuiltSet> build_from_feeds(const std::vector<std::string>& paths, std::uint32_t fields,
                                  bool skip_invalid, BuildOptions options, const Context& context);

// A set to be put in force.
struct OpenedSet {
    Image image;
    std::optional<std::vector<sieve_key>> exact; // its keys, for verification, if that was asked for
};

// The image in a file; or, if the file is a feed of source addresses, a set built of it with the defaults.
// With `verify` its keys, too: of that feed, or if that is empty of the feed itself; an image cannot list its
// keys.
Result<OpenedSet> open_set(const std::string& path, const std::optional<std::string>& verify,
                           const Context& context);

} // namespace sieve::cli
