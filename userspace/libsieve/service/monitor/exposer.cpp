// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/exposer.hpp"

#include <unistd.h>

#include <array>
#include <climits>
#include <optional>
#include <string_view>
#include <utility>

#include "libsieve/service/monitor/http_server.hpp"
#include "libsieve/service/monitor/metrics.hpp"
#include "libsieve/service/monitor/snapshot.hpp"
#include "libsieve/service/monitor/status_json.hpp"
#include "libsieve/service/monitor/status_page.hpp"

namespace sieve::service::watching {

namespace {

constexpr std::size_t shown_top_keys = 10;

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

} // namespace

class Exposer::Server {
  public:
    Server(Statistics& statistics, control::Kernel& kernel) : statistics_(&statistics), kernel_(&kernel) {}

    Status start(const ExposerSettings& settings) {
        SIEVE_ASSIGN(http_, HttpServer::start(
                                {.listen = settings.listen,
                                 .patience = settings.patience,
                                 .connections = settings.connections,
                                 .tick_every = statistics_->between()},
                                [this](std::string_view path) { return answer(path); },
                                [this] { (void)statistics_->observe(*kernel_); }));
        return {};
    }

    [[nodiscard]] const std::string& address() const { return http_->address(); }

  private:
    [[nodiscard]] HttpResponse answer(std::string_view path) const {
        if (path == "/metrics")
            return {.type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = metrics_text(Metrics(*statistics_, *kernel_).Collect())};
        if (path == "/")
            return {.type = "text/html; charset=utf-8",
                    .body = status_page(take_snapshot(*kernel_, *statistics_, shown_top_keys),
                                        statistics_->history(), host_name()),
                    .policy = status_page_policy};
        if (path == "/status.json")
            return {.type = "application/json",
                    .body = status_json(take_snapshot(*kernel_, *statistics_, shown_top_keys))};
        if (path == "/healthz") return {.body = "ok\n"};
        return {.status = 404, .body = "there is nothing here; see /, /metrics, /status.json and /healthz\n"};
    }

    Statistics* statistics_;
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

Result<Exposer> Exposer::start(const ExposerSettings& settings, Statistics& statistics,
                               control::Kernel& kernel) {
    auto server = std::make_unique<Server>(statistics, kernel);
    SIEVE_TRY(server->start(settings));
    return Exposer(std::move(server));
}

} // namespace sieve::service::watching
