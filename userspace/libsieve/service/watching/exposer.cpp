// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/watching/exposer.hpp"

#include <string_view>
#include <utility>

#include "libsieve/service/watching/http_server.hpp"

namespace sieve::service::watching {

class Exposer::Server {
  public:
    Server(Ledger& ledger, control::Kernel& kernel) : ledger_(&ledger), kernel_(&kernel) {}

    Status start(const ExposerSettings& settings) {
        SIEVE_ASSIGN(http_, HttpServer::start(
                                {.listen = settings.listen,
                                 .patience = settings.patience,
                                 .connections = settings.connections,
                                 .tick_every = ledger_->between()},
                                [this](std::string_view path) { return answer(path); },
                                [this] { (void)ledger_->observe(*kernel_); }));
        return {};
    }

    [[nodiscard]] const std::string& address() const { return http_->address(); }

  private:
    HttpAnswer answer(std::string_view path) const {
        if (path == "/healthz") return {.body = "ok\n"};
        return {.status = 404, .body = "there is nothing here; see /, /metrics, /status.json and /healthz\n"};
    }

    Ledger* ledger_;
    control::Kernel* kernel_;
    std::optional<HttpServer> http_;
};

Exposer::Exposer(std::unique_ptr<Server> server) : server_(std::move(server)) {}
Exposer::Exposer(Exposer&&) noexcept = default;
Exposer& Exposer::operator=(Exposer&&) noexcept = default;
Exposer::~Exposer() = default;

const std::string& Exposer::address() const {
    return server_->address();
}

Result<Exposer> Exposer::start(const ExposerSettings& settings, Ledger& ledger, control::Kernel& kernel) {
    auto server = std::make_unique<Server>(ledger, kernel);
    SIEVE_TRY(server->start(settings));
    return Exposer(std::move(server));
}

} // namespace sieve::service::watching
