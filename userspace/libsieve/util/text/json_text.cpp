// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/text/json_text.hpp"

#include <functional>

#include "libsieve/util/text/doubled_member.hpp"

namespace sieve {

std::string json_text(const nlohmann::json& value, int indent) {
    return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
    return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string json_line(const nlohmann::json& value) {
    return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

nlohmann::json parse_json(std::string_view text) {
    return nlohmann::json::parse(text, nullptr, false);
}

nlohmann::json parse_json(std::string_view text, std::optional<std::string>& twice) {
    DoubledMember watcher;
    auto value = nlohmann::json::parse(text, std::ref(watcher), false);
    twice = watcher.found();
    return value;
}

} // namespace sieve
