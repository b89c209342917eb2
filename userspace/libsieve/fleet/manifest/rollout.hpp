// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How far a manifest has come: the record that nodes advance by transactions, and which nodes a stage covers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

enum class RolloutState : std::uint8_t {
    running,     // a stage that is healthy for long enough is followed by the next one
    paused,      // by an operator: no further stage
    halted,      // a node failed or dropped too much: no further stage
    rolled_back, // likewise, and all nodes go back to the manifest before
    complete,    // the last stage is healthy
};

// "running", "paused", "halted", "rolled_back" or "complete".
[[nodiscard]] const char* rollout_state_name(RolloutState state);

struct RolloutRecord {
    std::string manifest{};  // digest of the manifest that this is about
    std::uint32_t stage = 0; // the stages up to this one have the manifest
    RolloutState state = RolloutState::running;
    std::uint64_t since = 0; // milliseconds since 1970, by the clock of whoever wrote it
    std::string by{};        // a node's name, or "operator"
    std::string why{};       // one sentence; empty where nothing is to be said

    [[nodiscard]] friend bool operator==(const RolloutRecord&, const RolloutRecord&) = default;
};

[[nodiscard]] std::string rollout_text(const RolloutRecord& record);
// bad_input for a text that is none. Nobody signs this record: whoever may write it can hold a rollout up, or
// hurry it, and can bring no content into force that was not signed.
[[nodiscard]] Result<RolloutRecord> parse_rollout(const std::string& text);

// Stages as people write them: "canary,1%,10%" is the nodes with the label canary, then 1 and 10 % of all
// nodes, then all. invalid_request for anything else.
[[nodiscard]] Result<std::vector<Stage>> parse_stages(const std::string& text);
[[nodiscard]] std::string stages_text(const std::vector<Stage>& stages);

// The first stage that covers the node. The share of a stage is drawn by SHA-256 of manifest and node: each
// manifest begins with other nodes, and every node computes the same.
[[nodiscard]] std::uint32_t stage_of(const Manifest& manifest, const std::string& digest,
                                     const std::string& node, const std::vector<std::string>& labels);

// Whether the rollout has come to all nodes: it is at its last stage, and was not stopped.
[[nodiscard]] bool has_come_to_all(const SignedManifest& published, const RolloutRecord& record);

// Which manifest a node of this stage is to have in force: the manifest itself, or the one before it.
// `has_begun`: the node has it, or has begun to bring it in; once the rollout was stopped, no other node
// begins. Nothing: the record is about another manifest.
enum class Turn : std::uint8_t { now, before };
[[nodiscard]] std::optional<Turn> turn_of(const SignedManifest& published, const RolloutRecord& record,
                                          std::uint32_t stage, bool has_begun);

} // namespace sieve::fleet
