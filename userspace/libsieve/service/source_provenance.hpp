// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is remembered about a source's list: where it came from, which content it was, and what the server
// needs to hear to tell whether the list has changed since.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace sieve::service {

struct SourceProvenance {
    std::string source; // the source's identity (source_identity()); holds no credentials
    std::string digest; // of the bytes as they came (util/digest.hpp); empty: they came through a pipe
    std::uint64_t bytes = 0;
    std::string etag;          // as the server wrote it; empty: none
    std::string last_modified; // likewise
    std::int64_t asked = 0;    // seconds since 1970: when the source last gave or confirmed this content
    std::int64_t changed = 0;  // seconds since 1970: when this content was first seen, or the file's own time

    [[nodiscard]] friend bool operator==(const SourceProvenance&, const SourceProvenance&) = default;
};

// For the state directory. from_json() leaves out what is missing or of another type: provenance that cannot
// be read costs one download.
void to_json(nlohmann::json& json, const SourceProvenance& provenance);
void from_json(const nlohmann::json& json, SourceProvenance& provenance);

} // namespace sieve::service
