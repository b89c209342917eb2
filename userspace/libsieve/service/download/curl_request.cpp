// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/download/curl_request.hpp"

#include "libsieve/util/text/printable.hpp"
#include "libsieve/util/text/version.hpp"

namespace sieve::service {

CurlRequest::CurlRequest(CURL* curl, const std::string& url) : curl_(curl) {
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_USERAGENT, (std::string("xdp-sieve/") + version).c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, error_.data());
}

void CurlRequest::set_pem(CURLoption option, const std::string& text) {
    const curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
    set(option, &blob);
}

void CurlRequest::set_server(const ServerSecrets& secrets) {
    if (!secrets.authorities.empty()) {
        set_pem(CURLOPT_CAINFO_BLOB, secrets.authorities); // overrides CURLOPT_CAINFO
        set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    if (secrets.certificate.empty()) return;
    set_pem(CURLOPT_SSLCERT_BLOB, secrets.certificate);
    set_pem(CURLOPT_SSLKEY_BLOB, secrets.key);
}

void CurlRequest::add_header(const std::string& line) {
    curl_slist* longer = ::curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) {
        refused_ = true;
        return;
    }
    (void)headers_.release(); // the list keeps its first element
    headers_.reset(longer);
}

void CurlRequest::set_callbacks(curl_write_callback body, curl_write_callback header, void* self) {
    set(CURLOPT_WRITEFUNCTION, body);
    set(CURLOPT_WRITEDATA, self);
    set(CURLOPT_HEADERFUNCTION, header);
    set(CURLOPT_HEADERDATA, self);
}

bool CurlRequest::complete() {
    if (headers_) set(CURLOPT_HTTPHEADER, headers_.get());
    return !refused_;
}

std::string CurlRequest::why(CURLcode code) const {
    // libcurl says of a line that exceeds its limit that memory, or from 8.6 on a field, is too small.
    constexpr int too_large = 100; // CURLE_TOO_LARGE, which older headers lack
    if (code == CURLE_OUT_OF_MEMORY || static_cast<int>(code) == too_large)
        return "a header line of the answer is too long, or memory is short";
    return error_[0] != '\0' ? printable(error_.data()) : std::string(::curl_easy_strerror(code));
}

} // namespace sieve::service
