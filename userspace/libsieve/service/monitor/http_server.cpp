// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/http_server.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/config/values/listen_address.hpp"
#include "libsieve/util/system/event.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::watching {

namespace {

using Steady = std::chrono::steady_clock;

struct FreeAddresses {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

struct Listening {
    UniqueFd socket;
    std::string address;
    bool loopback = false;
};

bool is_loopback(const sockaddr_storage& address) {
    if (address.ss_family == AF_INET)
        return (ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr) != 0;
}

std::string address_text(const sockaddr_storage& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.ss_family == AF_INET) {
        const auto& four = reinterpret_cast<const sockaddr_in&>(address);
        ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
        return fmt::format("{}:{}", text.data(), ntohs(four.sin_port));
    }
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(six.sin6_port));
}

Result<Listening> listen_on(const std::string& listen) {
    const auto wanted = parse_listen_address(listen);
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (!wanted ||
        ::getaddrinfo(wanted->address.c_str(), std::to_string(wanted->port).c_str(), &hints, &found) != 0)
        return invalid_request(fmt::format("`{}`: expected an address and a port to listen on, such as "
                                           "127.0.0.1:19273 or [::1]:19273",
                                           printable(listen)));
    const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
    Listening listening;
    const auto refused = [&](const char* doing) {
        return kernel_refused(fmt::format("listening on {}: {}: {}", listen, doing, errno_text(errno)));
    };
    listening.socket =
        UniqueFd(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listening.socket) return refused("socket");
    const int fd = listening.socket.get(), one = 1;
    (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (addresses->ai_family == AF_INET6)
        (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (::bind(fd, addresses->ai_addr, addresses->ai_addrlen) != 0) return refused("bind");
    if (::listen(fd, SOMAXCONN) != 0) return refused("listen");
    sockaddr_storage bound{};
    socklen_t length = sizeof(bound);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return refused("getsockname");
    listening.address = address_text(bound);
    listening.loopback = is_loopback(bound);
    return listening;
}

HttpResponse short_answer(unsigned status, std::string text) {
    return {.status = status, .body = std::move(text) + "\n"};
}

struct DestroyResponse {
    void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};
struct StopDaemon {
    void operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }
};

} // namespace

bool is_local_host(std::string_view host) {
    if (const std::size_t colon = host.rfind(':');
        colon != std::string_view::npos &&
        host.find_first_not_of("0123456789", colon + 1) == std::string_view::npos &&
        (host.starts_with('[') ? host[colon - 1] == ']' : true))
        host = host.substr(0, colon);
    if (host == "[::1]") return true;
    std::string name(host);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : static_cast<char>(c);
    });
    if (name == "localhost" || name == "localhost.") return true;
    in_addr address{};
    return ::inet_pton(AF_INET, name.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

// What lives in the server's thread. Only that thread touches daemon_ and open_ once it runs.
class HttpServer::Loop {
  public:
    Loop(HttpSettings settings, Answer answer, std::function<void()> tick)
        : settings_(std::move(settings)), answer_(std::move(answer)), tick_(std::move(tick)) {}
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    ~Loop() {
        if (!thread_.joinable()) return;
        set_event(stop_.get());
        thread_.join();
    }

    Status start() {
        SIEVE_ASSIGN(Listening listening, listen_on(settings_.listen));
        address_ = listening.address;
        loopback_ = listening.loopback;
        SIEVE_ASSIGN(stop_, make_event());
        // The daemon accepts more connections than we keep: the newest is let in, and the oldest ends.
        daemon_.reset(MHD_start_daemon(
            MHD_USE_EPOLL, 0, nullptr, nullptr, &Loop::handle, this, MHD_OPTION_LISTEN_SOCKET,
            listening.socket.get(), MHD_OPTION_CONNECTION_LIMIT, settings_.connections * 2,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, settings_.connection_memory, MHD_OPTION_CONNECTION_TIMEOUT,
            static_cast<unsigned>(settings_.patience / std::chrono::seconds(1) + 1),
            MHD_OPTION_NOTIFY_CONNECTION, &Loop::connection_changed, this, MHD_OPTION_END));
        if (!daemon_)
            return kernel_refused(fmt::format("listening on {}: the server did not start", address_));
        (void)listening.socket.release(); // the daemon closes it
        thread_ = std::thread([this] { run(); });
        return {};
    }

    [[nodiscard]] const std::string& address() const { return address_; }

  private:
    struct Open {
        int socket = -1;
        Steady::time_point since{};
        bool cut = false;
    };

    void run() {
        sigset_t all;
        sigfillset(&all); // signals are the main thread's
        (void)::pthread_sigmask(SIG_BLOCK, &all, nullptr);
        (void)::pthread_setname_np(::pthread_self(), "watching");
        const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD);
        auto next_tick = Steady::now();
        for (;;) {
            std::array<pollfd, 2> wait{{{.fd = info->epoll_fd, .events = POLLIN, .revents = 0},
                                        {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
            (void)::poll(wait.data(), wait.size(), wait_for(next_tick));
            if (wait[1].revents != 0) break;
            if (ticks() && Steady::now() >= next_tick) {
                tick_();
                next_tick = Steady::now() + settings_.tick_every;
            }
            cut_off_late();
            // At its limit the daemon listens to nobody. When a connection has ended, the next run listens
            // again.
            do {
                ended_ = false;
                (void)MHD_run(daemon_.get());
            } while (ended_);
        }
        daemon_.reset();
    }

    [[nodiscard]] bool ticks() const { return tick_ && settings_.tick_every.count() > 0; }

    // Milliseconds until something is to be done without anybody asking; -1: never.
    int wait_for(Steady::time_point next_tick) const {
        std::optional<Steady::time_point> until;
        const auto at = [&](Steady::time_point point) { until = until ? std::min(*until, point) : point; };
        if (ticks()) at(next_tick);
        for (const Open& open : open_)
            if (!open.cut) at(open.since + settings_.patience);
        MHD_UNSIGNED_LONG_LONG milliseconds = 0;
        if (MHD_get_timeout(daemon_.get(), &milliseconds) == MHD_YES)
            at(Steady::now() +
               std::chrono::milliseconds(std::min<MHD_UNSIGNED_LONG_LONG>(milliseconds, 60000)));
        if (!until) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Steady::now());
        return static_cast<int>(std::max<std::int64_t>(0, left.count()));
    }

    // The daemon finds the connection closed by its client, as it seems, and lets go of it. What the client
    // did not read does not stay in memory either: closing resets the connection.
    static void cut(Open& open) {
        if (open.cut) return;
        const linger reset{.l_onoff = 1, .l_linger = 0};
        (void)::setsockopt(open.socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        (void)::shutdown(open.socket, SHUT_RDWR);
        open.cut = true;
    }

    void cut_off_late() {
        const auto now = Steady::now();
        for (Open& open : open_)
            if (now - open.since >= settings_.patience) cut(open);
    }

    static void connection_changed(void* self, MHD_Connection* connection, void** context,
                                   MHD_ConnectionNotificationCode code) {
        auto& loop = *static_cast<Loop*>(self);
        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
            const MHD_ConnectionInfo* const info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
            loop.open_.push_back({info->connect_fd, Steady::now()});
            *context = &loop.open_.back();
            std::size_t living = 0;
            for (auto open = loop.open_.rbegin(); open != loop.open_.rend(); ++open)
                if (!open->cut && ++living > loop.settings_.connections) cut(*open);
        } else {
            loop.open_.remove_if([&](const Open& open) { return &open == *context; });
            loop.ended_ = true;
        }
    }

    HttpResponse answer(MHD_Connection* connection, std::string_view path, std::string_view method) const {
        if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD)
            return short_answer(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
        const char* const host =
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
        if (loopback_ && host != nullptr && !is_local_host(host))
            return short_answer(MHD_HTTP_MISDIRECTED_REQUEST,
                                "this server answers only to localhost and to loopback addresses");
        try {
            return answer_(path);
        } catch (const std::exception& error) {
            return short_answer(MHD_HTTP_INTERNAL_SERVER_ERROR, error.what());
        }
    }

    static MHD_Result handle(void* self, MHD_Connection* connection, const char* path, const char* method,
                             const char* /*version*/, const char* /*upload*/, std::size_t* /*upload_size*/,
                             void** /*context*/) {
        const auto& loop = *static_cast<const Loop*>(self);
        const HttpResponse answer = loop.answer(connection, path, method);
        const std::unique_ptr<MHD_Response, DestroyResponse> response(MHD_create_response_from_buffer(
            answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY));
        if (!response) return MHD_NO;
        const std::pair<const char*, const char*> headers[] = {
            {MHD_HTTP_HEADER_CONTENT_TYPE, answer.type.c_str()},
            {"Content-Security-Policy", answer.policy.c_str()},
            {"X-Content-Type-Options", "nosniff"},
            {"X-Frame-Options", "DENY"},
            {"Referrer-Policy", "no-referrer"},
            {"Cross-Origin-Resource-Policy", "same-origin"},
            {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
            {MHD_HTTP_HEADER_CONNECTION, "close"},
        };
        for (const auto& [name, value] : headers)
            if (MHD_add_response_header(response.get(), name, value) != MHD_YES) return MHD_NO;
        if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED)
            (void)MHD_add_response_header(response.get(), MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        return MHD_queue_response(connection, answer.status, response.get());
    }

    const HttpSettings settings_;
    const Answer answer_;
    const std::function<void()> tick_;
    std::string address_;
    bool loopback_ = false;
    UniqueFd stop_;
    std::list<Open> open_; // oldest first
    bool ended_ = false;   // a connection, during this run
    std::unique_ptr<MHD_Daemon, StopDaemon> daemon_;
    std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;
HttpServer& HttpServer::operator=(HttpServer&&) noexcept = default;
HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const {
    return loop_->address();
}

Result<HttpServer> HttpServer::start(const HttpSettings& settings, Answer answer,
                                     std::function<void()> tick) {
    auto loop = std::make_unique<Loop>(settings, std::move(answer), std::move(tick));
    SIEVE_TRY(loop->start());
    return HttpServer(std::move(loop));
}

} // namespace sieve::service::watching
