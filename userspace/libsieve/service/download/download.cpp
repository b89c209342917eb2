// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/download.hpp"

#include <curl/curl.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/service/download/curl_request.hpp"
#include "libsieve/service/download/url.hpp"
#include "libsieve/util/printable.hpp"
#include "libsieve/util/write_all.hpp"

namespace sieve::service {

namespace {

constexpr long ok = 200;
constexpr long not_modified = 304;
// Longer ones are no use: what they tag is then fetched again.
constexpr std::size_t longest_validator = 1024;

// One exchange, redirects included.
class Download {
  public:
    Download(const HttpRequest& request, int to)
        : request_(request), to_(to), curl_(::curl_easy_init(), &::curl_easy_cleanup) {}

    tl::expected<HttpAnswer, HttpFailure> run() {
        if (!curl_) return fail("no memory to ask for it");
        asked_.emplace(curl_.get(), request_.url);
        set_request();
        set_limits();
        asked_->set_callbacks(&on_body, &on_header, this);
        if (!asked_->complete()) return fail("libcurl does not take what is to be asked for");
        const CURLcode code = ::curl_easy_perform(curl_.get());
        return answer_of(code);
    }

  private:
    void set_request() {
        asked_->set(CURLOPT_PROXY, request_.proxy.c_str()); // "": none
        asked_->set(CURLOPT_REDIR_PROTOCOLS_STR, "https");
        asked_->set(CURLOPT_FOLLOWLOCATION, 1L);
        asked_->set(CURLOPT_MAXREDIRS, static_cast<long>(request_.limits.redirects));
        if (!request_.certificates.empty()) asked_->set_authorities(request_.certificates);
        if (!request_.etag.empty()) asked_->add_header("If-None-Match: " + request_.etag);
        if (!request_.last_modified.empty())
            asked_->add_header("If-Modified-Since: " + request_.last_modified);
        for (const std::string& line : request_.headers) asked_->add_header(line);
    }
    void set_limits() {
        const SandboxLimits& limits = request_.limits;
        asked_->set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
        asked_->set(CURLOPT_TIMEOUT_MS, static_cast<long>(limits.fetch.count()));
        asked_->set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(limits.low_speed_bytes));
        asked_->set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.low_speed.count()));
        asked_->set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits.source_bytes));
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
        long status = 0;
        ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
        const std::size_t size = bytes.size();
        if (status != ok) return size; // an error's page, or a redirect's
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
        take_value(line, "Location:", location_);
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

    tl::expected<HttpAnswer, HttpFailure> answer_of(CURLcode code) {
        if (code != CURLE_OK) return fail(why(code));
        long status = 0;
        ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
        const bool conditional = !request_.etag.empty() || !request_.last_modified.empty();
        if (status == not_modified && conditional) {
            answer_.unchanged = true;
            // A server need not repeat them.
            if (answer_.etag.empty()) answer_.etag = request_.etag;
            if (answer_.last_modified.empty()) answer_.last_modified = request_.last_modified;
            return answer_;
        }
        if (status != ok)
            return fail(fmt::format("the server answered {}{}{}, expected {}", status,
                                    reason_.empty() ? "" : " ", reason_, ok));
        return answer_;
    }
    [[nodiscard]] std::string why(CURLcode code) const {
        if (too_large_ || code == CURLE_FILESIZE_EXCEEDED)
            return fmt::format("larger than {} bytes, the limit", request_.limits.source_bytes);
        if (write_error_ != 0) return fmt::format("cannot be kept: {}", errno_text(write_error_));
        const std::string said = asked_->why(code);
        switch (code) {
        case CURLE_UNSUPPORTED_PROTOCOL:
            return location_.empty() ? said
                                     : fmt::format("the server redirects to {}, expected a redirect to https",
                                                   displayed_url(location_));
        case CURLE_TOO_MANY_REDIRECTS:
            return fmt::format("the server redirects more than {} times", request_.limits.redirects);
        case CURLE_PARTIAL_FILE:
        case CURLE_GOT_NOTHING:
            return "the answer was cut short: " + said;
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
    int to_;
    std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> curl_;
    std::optional<CurlRequest> asked_;
    HttpAnswer answer_;
    std::string reason_;
    std::string location_;
    bool too_large_ = false;
    int write_error_ = 0;
};

} // namespace

tl::expected<HttpAnswer, HttpFailure> fetch_http(const HttpRequest& request, int to) {
    return Download(request, to).run();
}

} // namespace sieve::service
