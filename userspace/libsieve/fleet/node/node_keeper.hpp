// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Brings manifests into force on this machine: has their blobs fetched, puts them where the daemon finds them
// as sources, and waits until the kernel runs what the daemon made of them.
//
//     bring_in() --> worker thread: fetch, switch `current`                  is it in force?
//                                           |                                 ^          ^
//                                           v                                 |          |
//                    files --> inotify --> the daemon's cycle --> counters ---+   kernel-+
//
// A manifest counts as in force once every one of its sets was asked after the switch, was taken, and the
// kernel runs the image that was made of it. A process that dies at any moment leaves links that lead to
// whole manifests. Sandbox, guards, preflight and swap are the daemon's, as for any other source.
//
// Nothing here parses what came over the network: manifests come with a signature that was found right, and
// blobs with a digest that was.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libsieve/fleet/node/local_node.hpp"
#include "libsieve/fleet/node/node.hpp"
#include "libsieve/fleet/servers/blob_file.hpp"
#include "libsieve/service/sources/backoff.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct KeeperSettings {
    std::string folder{}; // NodeStore's
    // Brings a blob to a file `path` (keep_blob()), or gives up when the descriptor `cancel` becomes
    // readable. `before` is the digest of a blob in the same folder that it may be much like; empty: none.
    std::function<Status(const Blob& blob, const std::string& path, const std::string& before, int cancel)>
        fetch{};
    std::string fleet{};                     // its name
    std::string node{};                      // this host's name in the fleet
    std::vector<std::string> trusted{};      // the IDs of the pinned keys
    std::chrono::milliseconds poll_busy{20}; // how often the daemon is looked at meanwhile
    std::chrono::milliseconds patience{std::chrono::minutes(10)}; // with the daemon
    service::BackoffLimits retry{.first = std::chrono::seconds(2), .most = std::chrono::minutes(10)};
};

class NodeKeeper final : public Node {
  public:
    // Starts the thread. `node` and `log` outlive the keeper. Errors: the folder cannot be had.
    [[nodiscard]] static Result<std::unique_ptr<NodeKeeper>> start(KeeperSettings settings,
                                                                   const LocalNode& node, service::Log& log);
    NodeKeeper(const NodeKeeper&) = delete;
    NodeKeeper& operator=(const NodeKeeper&) = delete;
    // Ends the thread at once. What is in force stays.
    ~NodeKeeper() override;

    [[nodiscard]] NodeView view() override;
    [[nodiscard]] Status accept(const SignedManifest& manifest) override;
    [[nodiscard]] Status bring_in(const SignedManifest& manifest) override;
    void tell(const FollowerNews& news) override;
    void say(service::LogLevel level, const std::string& sentence) override;

    // The configuration may have other sets now, or a person has accepted a list that was refused: looks at
    // the wanted manifest again.
    void look_again();

  private:
    NodeKeeper() = default;
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace sieve::fleet
