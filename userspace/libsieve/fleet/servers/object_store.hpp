// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The store of blobs: any HTTP server that takes PUT and serves ranges, or S3. A blob's name is its SHA-256,
// so a blob never changes, and what was read wrong is seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libsieve/fleet/servers/blob_file.hpp"
#include "libsieve/fleet/servers/http_client.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct StoreSettings {
    std::string url{}; // of the folder or bucket, without / at its end
    HttpCredentials access{};
    std::uint64_t rate = 0; // bytes per second at most; 0: no limit
    // A transfer that brings nothing for so long fails, and goes on where it was.
    std::chrono::seconds silence{30};
};

enum class Uploaded : std::uint8_t { sent, there_already };

class ObjectStore {
  public:
    // `cancel`: see HttpClient.
    explicit ObjectStore(StoreSettings settings, int cancel = -1);

    // Puts the file into the store unless a blob of this name and size is there. `again` sends it in any
    // case: the store may have damaged it. Errors: bad_input that names the URL.
    [[nodiscard]] Result<Uploaded> put(const Blob& blob, int file, bool again = false);

    // Writes the blob to a new file `path`, readable by its owner alone, on the disk when this returns. Until
    // it is complete and its digest is right, it is `path`.part; a later call goes on from there. bad_input:
    // the store does not answer, has no such blob, or has another one (then nothing of it is kept), or the
    // disk is full. A `path` that is there is taken for complete: it got its name only after its digest was
    // checked.
    [[nodiscard]] Status get(const Blob& blob, const std::string& path);

    // Writes what is missing of the blob to the end of an open file, which may have a part of it already. The
    // digest is the caller's to check.
    [[nodiscard]] Status download(const Blob& blob, int file);

    // What the store has under this name, of at most so many bytes. Nothing: it has no such thing.
    [[nodiscard]] Result<std::optional<std::string>> read(const std::string& name, std::uint64_t most);

    [[nodiscard]] std::string url_of(const Blob& blob) const;
    // Requests and bytes so far, for measurements.
    [[nodiscard]] std::uint64_t requests() const { return requests_; }
    [[nodiscard]] std::uint64_t received() const { return received_; }

  private:
    StoreSettings settings_;
    HttpClient http_;
    std::uint64_t requests_ = 0;
    std::uint64_t received_ = 0;
};

} // namespace sieve::fleet
