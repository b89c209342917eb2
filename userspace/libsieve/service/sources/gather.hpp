// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The bytes of a list, brought here as a file that nobody has looked into.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "libsieve/service/sandbox/sandbox_settings.hpp"
#include "libsieve/service/sources/origin.hpp"
#include "libsieve/service/state/source_provenance.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

struct Gathered {
    // The content as it came, maybe compressed, maybe hostile. Nothing if a server said that it is what it
    // was.
    std::optional<UniqueFd> content;
    SourceProvenance provenance;
    bool unchanged = false; // the content is the known one
    struct stat file {};    // that the content is in, before it was read; all zero: it came from no file
};

// changed_meanwhile naming the source if the file that the content came from has changed since it was
// gathered: it may have been read half old, half new. A file that lost its name, such as by a rename over it,
// has not changed.
[[nodiscard]] Status confirm_unchanged(const Gathered& gathered, const std::string& name);

// Opens a file; has a child download, or run a command. `known` is the provenance of the content that the
// caller has, of whichever origin; a server is then asked for something newer only. A child of a command is
// ended with all it started.
[[nodiscard]] tl::expected<Gathered, GatherFailure>
gather(const Origin& origin, const SourceProvenance* known, const SandboxSettings& settings);

} // namespace sieve::service
