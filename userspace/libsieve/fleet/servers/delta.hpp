// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A feed that has changed a little, as the difference to the feed before: zstd's patch of one file from
// another. The store has it beside the whole blob, under a name that both digests give. Nobody signs it: what
// comes of it has the digest that the manifest names, or the whole blob is fetched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libsieve/fleet/servers/blob_file.hpp"
#include "libsieve/fleet/servers/object_store.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

// Larger blobs are always sent as a whole: making a difference needs memory for all of it.
inline constexpr std::uint64_t largest_for_delta = std::uint64_t{128} << 20;

// The name in the store of what turns the blob `from` into the blob `to`; both are digests.
[[nodiscard]] std::string delta_name(const std::string& from, const std::string& to);

// What turns the content of one file into that of the other.
[[nodiscard]] Result<std::string> make_delta(int from, int to);
// Writes what comes of it into an empty file. bad_input unless that has `bytes` bytes.
[[nodiscard]] Status apply_delta(int from, std::string_view delta, int into, std::uint64_t bytes);

// A blob that is at hand.
struct BlobAtHand {
    std::string digest{};
    int file = -1; // borrowed
};

// Brings a blob into the file as ObjectStore::download() does: by what turns the blob at hand into it if the
// store has that, and else, or if anything is amiss, as a whole.
[[nodiscard]] Status bring_blob(ObjectStore& store, const Blob& blob, const std::optional<BlobAtHand>& before,
                                int file);

} // namespace sieve::fleet
