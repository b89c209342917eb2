// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a fleet is to have in force: a manifest, its one canonical text, and the envelope with its signatures.
//
// A manifest's text is JSON without blanks, keys in the order of their bytes, integers in decimal, rates in
// the shortest form that reads back as the same double. A text that is not canonical is no manifest, so a
// manifest has one SHA-256, which names it. The signature covers `signature_context` and the text.
//
//     {"manifest":"{\"fleet\":\"edge\",...}","signatures":[{"key":"KEY ID","signature":"BASE64"}]}
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/fleet/manifest/signing_key.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

// Version 1 has no times: nodes that have accepted a manifest follow it, and new ones do not.
inline constexpr std::uint64_t manifest_version = 2;
inline constexpr std::size_t most_stages = 16;
inline constexpr std::size_t most_signatures = 16;
inline constexpr std::uint32_t longest_soak = 7 * 24 * 3600; // seconds
// Larger texts are no manifests: a table has at most a few dozen sets.
inline constexpr std::size_t longest_manifest = std::size_t{256} << 10;
// In seconds: how long new nodes may take a manifest that is not signed anew.
inline constexpr std::uint64_t standard_validity = std::uint64_t{30} * 24 * 3600;
inline constexpr std::uint64_t longest_validity = std::uint64_t{3660} * 24 * 3600;
// Keeps a signature of a manifest from being one of anything else.
inline constexpr std::string_view signature_context = "xdp-sieve fleet manifest 1\n";

enum class BlobKind : std::uint8_t {
    image, // put in force as it is: all nodes share its secret hash keys
    feed,  // every node builds its own image of it
};

struct ManifestSet {
    std::string name{};
    BlobKind as = BlobKind::image;
    std::string digest{};      // SHA-256 of the blob, and its name in the store
    std::uint64_t bytes = 0;   // of the blob
    std::uint64_t entries = 0; // of the list; of an image its keys
    double rate = 0;        // the false positive rate that its publisher expects; 0: the node's build decides
    std::string identity{}; // of an image: 32 hexadecimal digits; of a feed empty
    std::string action{};   // "drop", "pass" or "count"; empty: what each node is configured to do

    [[nodiscard]] friend bool operator==(const ManifestSet&, const ManifestSet&) = default;
};

// A stage covers the nodes that carry its label, or its share of all nodes (rollout.hpp), besides those of
// the stages before it.
struct Stage {
    std::string label{};
    std::uint32_t permille = 1000; // 1 to 1000; ignored with a label

    [[nodiscard]] friend bool operator==(const Stage&, const Stage&) = default;
};

enum class OnRolloutFailure : std::uint8_t {
    halt,     // no further stage; the stages that have it keep it
    rollback, // likewise, and the nodes go back to `previous`
};

struct Rollout {
    std::vector<Stage> stages{Stage{}};    // never empty; the last one covers all nodes
    std::uint32_t soak_seconds = 30;       // how long a stage must be healthy before the next one
    std::uint32_t most_jump_permille = 50; // of all packets: how much the dropped share may rise on a node
    OnRolloutFailure on_failure = OnRolloutFailure::halt;

    [[nodiscard]] friend bool operator==(const Rollout&, const Rollout&) = default;
};

struct Manifest {
    std::string fleet{};
    // Rises with every manifest of a fleet: milliseconds since 1970 when it was made, or one more than the
    // serial before it, whichever is more. A fleet whose etcd lost everything goes on where it was.
    std::uint64_t serial = 0;
    // In seconds since 1970. A node that has accepted no manifest yet takes none outside of these times, so
    // that nobody can hand it an old one. Both are 0 in version 1.
    std::uint64_t published_at = 0;
    std::uint64_t valid_until = 0;
    // Digest of the manifest before it, which nodes go back to (base_of() in publication.hpp); empty: there
    // is none.
    std::string previous{};
    std::string rolls_back{};        // digest of the manifest that it takes back; empty: it is no rollback
    std::vector<ManifestSet> sets{}; // by name
    Rollout rollout{};

    [[nodiscard]] friend bool operator==(const Manifest&, const Manifest&) = default;
};

[[nodiscard]] std::string manifest_text(const Manifest& manifest);
// bad_input unless the text is canonical and every field is within its bounds. Says what was expected.
[[nodiscard]] Result<Manifest> parse_manifest(const std::string& text);
// SHA-256 of the text.
[[nodiscard]] std::string manifest_digest(const Manifest& manifest);

struct ManifestSignature {
    std::string key{};   // its ID
    std::string bytes{}; // 64 of them
};

struct SignedManifest {
    Manifest manifest{};
    std::string digest{};               // of the manifest's text
    std::vector<std::string> signers{}; // the IDs of the pinned keys whose signature is right; never empty
    std::vector<ManifestSignature> signatures{}; // theirs
};

// The envelope.
[[nodiscard]] Result<std::string> sign_manifest(const Manifest& manifest, const SigningKey& key);
// Opens an envelope of the fleet. bad_input if it is none, if none of the pinned keys signed it, or if it was
// made for another fleet. Looks at nothing inside the manifest before a signature was found right.
[[nodiscard]] Result<SignedManifest> open_envelope(const std::string& envelope, const std::string& fleet,
                                                   std::span<const PublicKey> pinned);

// Of seconds since 1970: "2026-11-22 07:48:29 UTC".
[[nodiscard]] std::string time_text(std::uint64_t seconds);

// A fleet's name: 1 to 64 of A-Z a-z 0-9 . _ -
[[nodiscard]] bool is_fleet_name(std::string_view text);

} // namespace sieve::fleet
