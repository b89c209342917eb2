// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/origin.hpp"

#include <fmt/core.h>

#include "libsieve/service/url.hpp"
#include "libsieve/util/digest.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

std::string name(const FileOrigin& file) {
    return printable(file.path);
}
std::string name(const HttpOrigin& http) {
    return displayed_url(http.url);
}
std::string name(const CommandOrigin& command) {
    return "command " + (command.arguments.empty() ? std::string("without a program")
                                                   : printable(command.arguments.front()));
}
std::string name(const OpenOrigin& open) {
    return printable(open.name);
}

// What the name leaves out.
std::string secret(const FileOrigin&) {
    return {};
}
std::string secret(const HttpOrigin& http) {
    return http.url == displayed_url(http.url) ? std::string() : http.url;
}
std::string secret(const CommandOrigin& command) {
    std::string all;
    for (const std::string& argument : command.arguments) all += argument + '\0';
    return all;
}
std::string secret(const OpenOrigin&) {
    return {};
}

Status check(const FileOrigin& file) {
    if (file.path.empty()) return invalid_request("a list's path is empty");
    return {};
}
Status check(const HttpOrigin& http) {
    return check_url(http.url);
}
Status check(const CommandOrigin& command) {
    if (command.arguments.empty() || command.arguments.front().empty())
        return invalid_request("a command without a program");
    return {};
}
Status check(const OpenOrigin& open) {
    if (open.descriptor < 0) return invalid_request(fmt::format("{}: is not open", name(open)));
    return {};
}

} // namespace

std::string origin_name(const Origin& origin) {
    return std::visit([](const auto& one) { return name(one); }, origin);
}

std::string origin_identity(const Origin& origin) {
    const std::string hidden = std::visit([](const auto& one) { return secret(one); }, origin);
    // Enough to tell, and too little to guess a key from.
    constexpr std::size_t digits = 8;
    return origin_name(origin) + (hidden.empty() ? "" : " #" + digest_of(hidden).substr(0, digits));
}

Status check_origin(const Origin& origin) {
    return std::visit([](const auto& one) { return check(one); }, origin);
}

} // namespace sieve::service
