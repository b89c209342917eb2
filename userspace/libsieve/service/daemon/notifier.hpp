// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the service manager is told: sd_notify(3).
#pragma once

#include <string>

namespace sieve::service {

class Notifier {
  public:
    virtual ~Notifier() = default;
    // Lines such as "READY=1\nSTATUS=...".
    virtual void send(const std::string& lines) = 0;
};

// Sends to $NOTIFY_SOCKET; to nobody if there is none.
class SystemdNotifier final : public Notifier {
  public:
    void send(const std::string& lines) override;
};

// "RELOADING=1" with the time since boot that systemd wants with it.
[[nodiscard]] std::string reloading_lines();

} // namespace sieve::service
