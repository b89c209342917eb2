// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A Node over a socket: the child that follows the fleet asks, the process with privileges answers. One
// question at a time, each with its answer. What the child says is read as fields (fields.hpp), and a
// manifest counts only with a signature that the answering side has found right itself.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "libsieve/fleet/manifest/signing_key.hpp"
#include "libsieve/fleet/node/node.hpp"

namespace sieve::fleet {

// The child's side. Ends the process when nobody answers any more: then there is nothing left to do.
class RemoteNode final : public Node {
  public:
    // Borrows the socket.
    explicit RemoteNode(int socket) : socket_(socket) {}

    [[nodiscard]] NodeView view() override;
    [[nodiscard]] Status accept(const SignedManifest& manifest) override;
    [[nodiscard]] Status bring_in(const SignedManifest& manifest) override;
    void tell(const FollowerNews& news) override;
    void say(service::LogLevel level, const std::string& sentence) override;

  private:
    [[nodiscard]] std::string ask(const std::string& question);

    int socket_;
    std::mutex asking_;
};

// Answers until the other side ends, says what makes no sense, or the socket is shut down.
void serve_node(int socket, Node& node, const std::string& fleet, std::span<const PublicKey> pinned);

} // namespace sieve::fleet
