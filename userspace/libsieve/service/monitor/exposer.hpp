// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The HTTP server of the service: /metrics for Prometheus, / the status page, /status.json the same for
// programs, /healthz for whoever asks whether the daemon lives. Nothing can be changed through it.
//
// The server has one thread of its own. That thread also observes the counters every Statistics::between(),
// so that there is a history to show.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/service/monitor/statistics.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::watching {

struct ExposerSettings {
    std::string listen = "127.0.0.1:19273"; // ADDRESS:PORT or [ADDRESS]:PORT
    // A request that has not arrived and been answered by then is cut off.
    std::chrono::milliseconds patience{5000};
    unsigned connections = 64; // at once; one more ends the oldest
};

class Exposer {
  public:
    // Starts to serve. The statistics and the kernel must outlive the exposer, and nobody else may use
    // `kernel`. Errors: invalid_request for an address that is none; kernel_refused if it cannot be listened
    // on.
    [[nodiscard]] static Result<Exposer> start(const ExposerSettings& settings, Statistics& statistics,
                                               control::Kernel& kernel);
    Exposer(Exposer&&) noexcept;
    Exposer& operator=(Exposer&&) noexcept;
    ~Exposer(); // stops it

    // Where it listens, such as "127.0.0.1:19273".
    [[nodiscard]] const std::string& address() const;

  private:
    class Server;
    explicit Exposer(std::unique_ptr<Server> server);
    std::unique_ptr<Server> server_;
};

} // namespace sieve::service::watching
