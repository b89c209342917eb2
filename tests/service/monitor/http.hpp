// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Asking a server, politely through libcurl, or byte by byte.
#pragma once

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service::test {

struct HttpReply {
    long status = 0; // 0: no answer
    std::string headers;
    std::string body;
};

inline std::size_t append_to(const char* data, std::size_t size, std::size_t count, void* text) {
    static_cast<std::string*>(text)->append(data, size * count);
    return size * count;
}

inline HttpReply ask(const std::string& url, const std::string& method = "GET",
                     const std::vector<std::string>& headers = {}) {
    const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
    curl_slist* list = nullptr;
    for (const std::string& header : headers) list = curl_slist_append(list, header.c_str());
    HttpReply reply;
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, 60L); // only ends a hanging test
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append_to);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
    curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, append_to);
    curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &reply.headers);
    if (method == "HEAD")
        curl_easy_setopt(curl.get(), CURLOPT_NOBODY, 1L);
    else if (method != "GET")
        curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method.c_str());
    if (curl_easy_perform(curl.get()) == CURLE_OK)
        curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply.status);
    curl_slist_free_all(list);
    return reply;
}

// A connection to 127.0.0.1 that says nothing yet.
inline UniqueFd connect_to(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return {};
    return fd;
}

// What the other end says until it closes.
inline std::string read_to_end(int connection) {
    std::string text;
    std::array<char, 4096> block;
    for (ssize_t got = 0; (got = ::recv(connection, block.data(), block.size(), 0)) > 0;)
        text.append(block.data(), static_cast<std::size_t>(got));
    return text;
}

inline bool send_text(int connection, const std::string& text) {
    return ::send(connection, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

} // namespace sieve::service::test
