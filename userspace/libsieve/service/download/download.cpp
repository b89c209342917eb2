// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/download.hpp"

#include <curl/curl.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/service/download/curl_request.hpp"
#include "libsieve/service/download/url.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

constexpr long ok = 200;
constexpr long created = 201;
constexpr long moved[] = {301, 302, 303, 307, 308};
constexpr long not_modified = 304;
constexpr long unauthorized = 401;
constexpr long proxy_refuses = 407;
// Longer ones are no use: what they tag is then fetched again.
constexpr std::size_t longest_validator = 1024;

using Clock = std::chrono::steady_clock;

// A download: one exchange, and one more for each redirect.
class Download {
  public:
    Download(const HttpRequest& request, const Credentials& credentials, int to, const Progress& progress)
        : request_(request), credentials_(credentials), to_(to), progress_(progress), url_(request.url),
          url_user_(take_user(url_)), server_(server_of(url_)),
          curl_(::curl_easy_init(), &::curl_easy_cleanup) {}

    tl::expected<HttpAnswer, HttpFailure> run() {
        if (!curl_) return fail("no memory to ask for it");
        for (std::uint32_t redirects = 0;; redirects++) {
            if (!ask()) return fail("libcurl does not take what is to be asked for");
            if (const CURLcode code = ::curl_easy_perform(curl_.get()); code != CURLE_OK)
                return fail(why(code));
            const std::optional<std::string> next = redirection();
            if (!next) return answer_of();
            if (redirects == request_.limits.redirects)
                return fail(
                    fmt::format("the server redirects more than {} times", request_.limits.redirects));
            if (!server_of(*next).starts_with("https:"))
                return fail(fmt::format("the server redirects to {}, expected a redirect to https",
                                        displayed_url(*next)));
            url_ = *next;
            (void)take_user(url_); // a server does not say who we are
        }
    }

  private:
    // libcurl itself would take headers and client certificates wherever redirects lead.
    [[nodiscard]] bool is_our_server() const { return server_of(url_) == server_; }

    // False: libcurl does not take it.
    bool ask() {
        ::curl_easy_reset(curl_.get()); // keeps connections
        asked_.emplace(curl_.get(), url_);
        set_request();
        set_credentials();
        set_proxy();
        set_limits();
        asked_->set_callbacks(&on_body, &on_header, this);
        if (progress_) {
            asked_->set(CURLOPT_NOPROGRESS, 0L);
            asked_->set(CURLOPT_XFERINFOFUNCTION, &on_progress);
            asked_->set(CURLOPT_XFERINFODATA, this);
        }
        return asked_->complete();
    }
    void set_request() {
        if (!request_.access.user_agent.empty())
            asked_->set(CURLOPT_USERAGENT, request_.access.user_agent.c_str());
        if (!request_.etag.empty()) asked_->add_header("If-None-Match: " + request_.etag);
        if (!request_.last_modified.empty())
            asked_->add_header("If-Modified-Since: " + request_.last_modified);
        if (request_.post.empty()) return;
        asked_->add_header("Content-Type: application/json");
        asked_->set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.post.size()));
        asked_->set(CURLOPT_POSTFIELDS, request_.post.c_str());
    }
    void set_credentials() {
        ServerSecrets server = credentials_.server;
        const bool ours = is_our_server();
        if (!ours) server.certificate.clear();
        asked_->set_server(server);
        if (!ours) return;
        for (const std::string& line : credentials_.headers) asked_->add_header(line);
        const bool has_user = !credentials_.username.empty();
        const std::string& name = has_user ? credentials_.username : url_user_.name;
        const std::string& password = has_user ? credentials_.password : url_user_.password;
        if (name.empty() && password.empty()) return;
        asked_->set(CURLOPT_USERNAME, name.c_str());
        asked_->set(CURLOPT_PASSWORD, password.c_str());
    }
    void set_proxy() {
        const ProxyAccess& proxy = request_.access.proxy;
        asked_->set(CURLOPT_PROXY, proxy.url.c_str());             // "": none
        asked_->set(CURLOPT_NOPROXY, "localhost,127.0.0.0/8,::1"); // which is this host, not the proxy
        if (proxy.username.empty()) return;
        asked_->set(CURLOPT_PROXYUSERNAME, proxy.username.c_str());
        asked_->set(CURLOPT_PROXYPASSWORD, credentials_.proxy_password.c_str());
    }
    void set_limits() {
        const SandboxLimits& limits = request_.limits;
        const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_);
        const auto left = std::max(limits.fetch - spent, std::chrono::milliseconds{1});
        asked_->set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
        asked_->set(CURLOPT_TIMEOUT_MS, static_cast<long>(left.count()));
        asked_->set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(limits.low_speed_bytes));
        asked_->set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.low_speed.count()));
        asked_->set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits.source_bytes));
    }

    static int on_progress(void* self, curl_off_t all, curl_off_t now, curl_off_t, curl_off_t) {
        const double share = all > 0 ? static_cast<double>(now) / static_cast<double>(all) : 0;
        static_cast<Download*>(self)->progress_("downloading", std::min(share, 1.0));
        return 0;
    }
    // A body without a declared length has no other limit.
    static std::size_t on_body(char* bytes, std::size_t, std::size_t size, void* self) {
        return static_cast<Download*>(self)->take_body({bytes, size});
    }
    static std::size_t on_header(char* bytes, std::size_t, std::size_t size, void* self) {
        static_cast<Download*>(self)->take_header({bytes, size});
        return size;
    }
    std::size_t take_body(std::string_view bytes) {
        const std::size_t size = bytes.size();
        if (!is_good()) return size; // an error's page, or a redirect's
        answer_.bytes += size;
        too_large_ = answer_.bytes > request_.limits.source_bytes;
        if (too_large_) return 0;
        write_error_ = write_whole(to_, bytes);
        return write_error_ == 0 ? size : 0;
    }
    // Every answer has headers; those of the last one count.
    void take_header(std::string_view line) {
        while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
        if (line.starts_with("HTTP/")) {
            answer_.etag.clear();
            answer_.last_modified.clear();
            reason_.clear();
            if (const auto space = line.find(' '); space != std::string_view::npos)
                if (const auto second = line.find(' ', space + 1); second != std::string_view::npos)
                    reason_ = printable(line.substr(second + 1), 64);
            return;
        }
        take_value(line, "ETag:", answer_.etag);
        take_value(line, "Last-Modified:", answer_.last_modified);
    }
    static void take_value(std::string_view line, std::string_view name, std::string& to) {
        if (line.size() < name.size() || ::strncasecmp(line.data(), name.data(), name.size()) != 0) return;
        line.remove_prefix(name.size());
        while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
        const bool usable =
            line.size() <= longest_validator &&
            std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c < 0x7f; });
        to = usable ? std::string(line) : std::string();
    }

    [[nodiscard]] long status() const {
        long number = 0;
        ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &number);
        return number;
    }
    [[nodiscard]] bool is_good() const {
        return status() == ok || (!request_.post.empty() && status() == created);
    }
    // Where the answer leads; nothing: it is an answer.
    [[nodiscard]] std::optional<std::string> redirection() const {
        if (std::ranges::find(moved, status()) == std::end(moved)) return std::nullopt;
        char* url = nullptr;
        if (::curl_easy_getinfo(curl_.get(), CURLINFO_REDIRECT_URL, &url) != CURLE_OK || url == nullptr)
            return std::nullopt;
        return url;
    }
    tl::expected<HttpAnswer, HttpFailure> answer_of() {
        const bool conditional = !request_.etag.empty() || !request_.last_modified.empty();
        if (status() == not_modified && conditional) {
            answer_.unchanged = true;
            // A server need not repeat them.
            if (answer_.etag.empty()) answer_.etag = request_.etag;
            if (answer_.last_modified.empty()) answer_.last_modified = request_.last_modified;
            return answer_;
        }
        if (!is_good())
            return fail(fmt::format("{} answered {}{}{}, expected {}{}",
                                    status() == proxy_refuses ? "the proxy" : "the server", status(),
                                    reason_.empty() ? "" : " ", reason_, request_.post.empty() ? ok : created,
                                    what_it_wants()));
        return answer_;
    }
    [[nodiscard]] std::string what_it_wants() const {
        if (status() == proxy_refuses)
            return request_.access.proxy.username.empty() ? "; it wants a user name and a password"
                                                          : "; it does not take the user name and password";
        if (status() != unauthorized) return {};
        if (!is_our_server())
            return fmt::format(
                "; it wants a password, and the redirect has led from {} to {}, which gets none", server_,
                server_of(url_));
        const bool has_any =
            !credentials_.username.empty() || !url_user_.name.empty() || !credentials_.headers.empty();
        return has_any ? "; it does not take the user name, password or headers"
                       : "; it wants a user name and a password, or headers";
    }
    [[nodiscard]] std::string why(CURLcode code) const {
        if (too_large_ || code == CURLE_FILESIZE_EXCEEDED)
            return fmt::format("larger than {} bytes, the limit", request_.limits.source_bytes);
        if (write_error_ != 0) return fmt::format("cannot be kept: {}", errno_text(write_error_));
        const std::string said = asked_->why(code);
        switch (code) {
        case CURLE_PARTIAL_FILE:
        case CURLE_GOT_NOTHING:
            return "the answer was cut short: " + said;
        case CURLE_SSL_CERTPROBLEM:
            return "the client certificate and its key cannot be used: " + said;
        default:
            return said;
        }
    }
    [[nodiscard]] tl::unexpected<HttpFailure> fail(const std::string& why) const {
        HttpFailure failure{fmt::format("{}: {}", displayed_url(request_.url), why), {}};
        if (curl_) ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &failure.status);
        curl_off_t seconds = 0;
        if (curl_ && ::curl_easy_getinfo(curl_.get(), CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK &&
            seconds > 0)
            failure.retry_after = std::chrono::seconds{seconds};
        return tl::unexpected(std::move(failure));
    }

    const HttpRequest& request_;
    const Credentials& credentials_;
    int to_;
    const Progress& progress_;
    Clock::time_point start_ = Clock::now();
    std::string url_; // that is asked for now, without a user
    UrlUser url_user_;
    std::string server_; // that credentials are for
    std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> curl_;
    std::optional<CurlRequest> asked_;
    HttpAnswer answer_;
    std::string reason_;
    bool too_large_ = false;
    int write_error_ = 0;
};

} // namespace

tl::expected<HttpAnswer, HttpFailure> fetch_http(const HttpRequest& request, const Credentials& credentials,
                                                 int to, const Progress& progress) {
    return Download(request, credentials, to, progress).run();
}

} // namespace sieve::service
