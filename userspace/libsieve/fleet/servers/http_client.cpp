// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/servers/http_client.hpp"

#include <curl/curl.h>
#include <poll.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/download/curl_request.hpp"
#include "libsieve/service/download/url.hpp"

namespace sieve::fleet {

namespace {

constexpr long ok = 200;
constexpr long partial = 206;
constexpr std::uint64_t smallest_buffer = 1024; // libcurl's own limits
constexpr std::uint64_t largest_buffer = 16384;
constexpr std::uint64_t longest_error_page = std::uint64_t{1} << 20;
constexpr std::chrono::seconds connect_patience{5};
// A peer that has gone is noticed after idle + 3 * interval, also on a connection that waits for events.
constexpr long keepalive_idle_seconds = 15;
constexpr long keepalive_interval_seconds = 5;

using Easy = std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)>;
using Multi = std::unique_ptr<CURLM, decltype(&::curl_multi_cleanup)>;

} // namespace

struct HttpClient::State {
    HttpCredentials access;
    int cancel = -1;
    Multi multi{::curl_multi_init(), &::curl_multi_cleanup};
    Easy easy{::curl_easy_init(), &::curl_easy_cleanup};
};

namespace {

// One exchange over a client's handles, of which `easy` has no options yet.
class Exchange {
  public:
    Exchange(const HttpCredentials& access, const HttpCall& call, CURL* easy, CURLM* multi, int cancel)
        : access_(access), call_(call), easy_(easy), multi_(multi), cancel_(cancel),
          request_(easy, call.url) {}

    Result<HttpReply> run() {
        set_request();
        set_access();
        set_limits();
        if (!request_.complete()) return fail("libcurl does not take what is to be asked for");
        if (::curl_multi_add_handle(multi_, easy_) != CURLM_OK) return fail("libcurl cannot ask for it");
        const std::optional<CURLcode> code = transfer();
        ::curl_multi_remove_handle(multi_, easy_);
        if (!code) return fail("given up");
        if (*code != CURLE_OK) return fail(why(*code));
        ::curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &reply_.status);
        return std::move(reply_);
    }

  private:
    void set_request() {
        request_.set(CURLOPT_PROXY, ""); // none, whatever the environment says
        request_.set_callbacks(&on_body, &on_header, this);
        for (const std::string& line : call_.headers) request_.add_header(line);
        request_.add_header("Expect:"); // no round trip before a body
        if (call_.method == "HEAD") {
            request_.set(CURLOPT_NOBODY, 1L);
        } else if (call_.method == "POST") {
            request_.set(CURLOPT_POST, 1L);
            request_.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call_.body.size()));
            request_.set(CURLOPT_POSTFIELDS, call_.body.data());
        } else if (call_.method == "PUT") {
            request_.set(CURLOPT_UPLOAD, 1L);
            request_.set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(call_.upload_bytes));
            request_.set(CURLOPT_READFUNCTION, &on_upload);
            request_.set(CURLOPT_READDATA, this);
            request_.set(CURLOPT_SEEKFUNCTION, &on_seek);
            request_.set(CURLOPT_SEEKDATA, this);
        } else if (call_.from > 0) {
            request_.set(CURLOPT_RANGE, (std::to_string(call_.from) + "-").c_str());
        }
    }
    void set_access() {
        request_.set_server(access_.server);
        if (!access_.user.empty()) {
            request_.set(CURLOPT_USERNAME, access_.user.c_str());
            request_.set(CURLOPT_PASSWORD, access_.password.c_str());
        }
        if (!access_.region.empty())
            request_.set(CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", access_.region).c_str());
    }
    void set_limits() {
        request_.set(CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(std::chrono::milliseconds(connect_patience).count()));
        request_.set(CURLOPT_TIMEOUT_MS, static_cast<long>(call_.timeout.count()));
        if (call_.silence.count() > 0) {
            request_.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
            request_.set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(call_.silence.count()));
        }
        // libcurl 7.88 reads up to 100 buffers before it looks at the rate.
        if (call_.rate > 0)
            request_.set(CURLOPT_BUFFERSIZE,
                         static_cast<long>(std::clamp(call_.rate / 400, smallest_buffer, largest_buffer)));
        request_.set(CURLOPT_MAX_RECV_SPEED_LARGE, static_cast<curl_off_t>(call_.rate));
        request_.set(CURLOPT_MAX_SEND_SPEED_LARGE, static_cast<curl_off_t>(call_.rate));
        request_.set(CURLOPT_TCP_KEEPALIVE, 1L);
        request_.set(CURLOPT_TCP_KEEPIDLE, keepalive_idle_seconds);
        request_.set(CURLOPT_TCP_KEEPINTVL, keepalive_interval_seconds);
    }

    // Nothing: it was given up.
    std::optional<CURLcode> transfer() {
        for (;;) {
            int running = 0;
            if (::curl_multi_perform(multi_, &running) != CURLM_OK) return CURLE_FAILED_INIT;
            int left = 0;
            while (const CURLMsg* message = ::curl_multi_info_read(multi_, &left))
                if (message->msg == CURLMSG_DONE) return message->data.result;
            if (running == 0) return CURLE_FAILED_INIT;
            curl_waitfd cancel{cancel_, CURL_WAIT_POLLIN, 0};
            constexpr int longest_wait = 60'000;
            ::curl_multi_poll(multi_, cancel_ < 0 ? nullptr : &cancel, cancel_ < 0 ? 0 : 1, longest_wait,
                              nullptr);
            if (cancel_ >= 0 && cancel.revents != 0) return std::nullopt;
        }
    }

    static std::size_t on_body(char* bytes, std::size_t, std::size_t size, void* self) {
        return static_cast<Exchange*>(self)->take_body({bytes, size});
    }
    std::size_t take_body(std::string_view bytes) {
        long status = 0;
        ::curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
        const bool content = status == ok || status == partial;
        received_ += bytes.size();
        too_large_ = received_ > (content ? call_.most_bytes : longest_error_page);
        if (too_large_) return 0;
        if (!call_.take) {
            reply_.body.append(bytes);
        } else if (content) {
            refused_ = !call_.take(status, bytes);
            if (refused_) return 0;
        }
        return bytes.size();
    }
    static std::size_t on_header(char* bytes, std::size_t, std::size_t size, void* self) {
        static_cast<Exchange*>(self)->take_header({bytes, size});
        return size;
    }
    void take_header(std::string_view line) {
        while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
        const auto value = [&](std::string_view name) -> std::optional<std::string> {
            if (line.size() < name.size() || ::strncasecmp(line.data(), name.data(), name.size()) != 0)
                return std::nullopt;
            std::string_view rest = line.substr(name.size());
            while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
            return std::string(rest);
        };
        if (const auto range = value("Content-Range:")) reply_.content_range = *range;
        if (const auto length = value("Content-Length:"))
            reply_.length = std::strtoull(length->c_str(), nullptr, 10);
    }
    static std::size_t on_upload(char* to, std::size_t, std::size_t size, void* self) {
        auto* exchange = static_cast<Exchange*>(self);
        ssize_t got = 0;
        do {
            got = ::pread(exchange->call_.upload, to, size, exchange->sent_);
        } while (got < 0 && errno == EINTR);
        if (got < 0) return CURL_READFUNC_ABORT;
        exchange->sent_ += got;
        return static_cast<std::size_t>(got);
    }
    // A kept connection may turn out to be closed; libcurl then begins again on a new one.
    static int on_seek(void* self, curl_off_t offset, int origin) {
        if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
        static_cast<Exchange*>(self)->sent_ = offset;
        return CURL_SEEKFUNC_OK;
    }

    [[nodiscard]] std::string why(CURLcode code) const {
        if (too_large_) return fmt::format("the answer is larger than {} bytes, the limit", call_.most_bytes);
        if (refused_) return "the answer could not be used";
        return request_.why(code);
    }
    [[nodiscard]] tl::unexpected<Error> fail(const std::string& why) const {
        return bad_input(fmt::format("{}: {}", service::displayed_url(call_.url), why));
    }

    const HttpCredentials& access_;
    const HttpCall& call_;
    CURL* easy_;
    CURLM* multi_;
    int cancel_;
    service::CurlRequest request_;
    HttpReply reply_;
    std::uint64_t received_ = 0;
    off_t sent_ = 0;
    bool too_large_ = false;
    bool refused_ = false;
};

} // namespace

HttpClient::HttpClient(HttpCredentials access, int cancel)
    : state_(new State{.access = std::move(access), .cancel = cancel}) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpReply> HttpClient::call(const HttpCall& call) {
    if (!state_->easy || !state_->multi) return failure(ErrorKind::out_of_memory, "no memory for a request");
    ::curl_easy_reset(state_->easy.get()); // keeps connections
    return Exchange(state_->access, call, state_->easy.get(), state_->multi.get(), state_->cancel).run();
}

bool HttpClient::cancelled() const {
    pollfd one{state_->cancel, POLLIN, 0};
    return state_->cancel >= 0 && ::poll(&one, 1, 0) > 0;
}

void HttpClient::wait(std::chrono::milliseconds time) const {
    pollfd one{state_->cancel, POLLIN, 0}; // poll() passes over a negative descriptor
    (void)::poll(&one, 1, static_cast<int>(time.count()));
}

} // namespace sieve::fleet
