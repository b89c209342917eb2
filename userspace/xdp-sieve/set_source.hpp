// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where a set comes from on the command line: an image, or a feed that is built on the way with the defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/util/input.hpp"
#include "xdp-sieve/context.hpp"

namespace sieve::cli {

// What a set is made of: inputs that were found, and that nobody has read yet.
struct SetSource {
    Input input;               // an image or a feed
    bool verified = false;     // the set's keys are wanted as well
    std::optional<Input> feed; // that lists them; if none, they are the input's own
};

// The source of each path, with its keys if `verify` is there: of that feed, or if that is empty of the input
// itself. Fails where an input cannot be read.
Result<SetSource> find_source(const std::string& path, const std::optional<std::string>& verify);

// A usage error where two sources, or one and `other`, would read the same pipe.
Status check_sources(const std::vector<SetSource>& sources, const Input* other = nullptr);

// Reads the feeds and builds their set. With --verbose says what was skipped and why.
Result<BuiltSet> build_from_feeds(std::vector<Input>& feeds, std::uint32_t fields, bool skip_invalid,
                                  BuildOptions options, const Context& context);

// A set to be put in force.
struct OpenedSet {
    Image image;
    std::optional<std::vector<sieve_key>> exact; // its keys, for verification, if that was asked for
};

// The image that the input is; or, if the input is a feed of source addresses, a set built of it with the
// defaults. An image cannot list its keys, so a verified one needs a feed.
Result<OpenedSet> open_set(SetSource source, const Context& context);

} // namespace sieve::cli
