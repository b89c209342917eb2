// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What all requests by libcurl share: options, of which each may be refused, headers, and the reason of a
// failure.
#pragma once

#include <array>
#include <memory>
#include <string>

#include <curl/curl.h>

#include "libsieve/service/download/credentials.hpp"

namespace sieve::service {

class CurlRequest {
  public:
    // Sets what every request has: this program's name, HTTP and HTTPS only, no signals. The handle must
    // outlive the request, and the request the transfer.
    CurlRequest(CURL* curl, const std::string& url);
    CurlRequest(const CurlRequest&) = delete;
    CurlRequest& operator=(const CurlRequest&) = delete;

    template <class Value>
    void set(CURLoption option, Value value) {
        if (::curl_easy_setopt(curl_, option, value) != CURLE_OK) refused_ = true;
    }
    // Whom it trusts, and with which certificate it comes. libcurl copies the texts.
    void set_server(const ServerSecrets& secrets);
    void add_header(const std::string& line);
    // The callbacks of curl_easy_setopt(3), both with this argument.
    void set_callbacks(curl_write_callback body, curl_write_callback header, void* self);

    // Libcurl took all options and headers. Asked once, when nothing more is to be set.
    [[nodiscard]] bool complete();

    // What libcurl says of a failed transfer, fit to be printed.
    [[nodiscard]] std::string why(CURLcode code) const;

  private:
    void set_pem(CURLoption option, const std::string& text);

    CURL* curl_;
    std::unique_ptr<curl_slist, decltype(&::curl_slist_free_all)> headers_{nullptr, &::curl_slist_free_all};
    std::array<char, CURL_ERROR_SIZE> error_{};
    bool refused_ = false;
};

} // namespace sieve::service
