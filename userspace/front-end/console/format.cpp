// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/format.hpp"

#include <fmt/format.h>

#include <sieve/prefix.h>

#include "libsieve/filters/prefixes/key_expansion.hpp"

namespace sieve::cli {

std::string format_count(std::uint64_t count) {
    const std::string digits = std::to_string(count);
    std::string grouped;
    for (std::size_t i = 0; i < digits.size(); i++) {
        if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
        grouped += digits[i];
    }
    return grouped;
}

std::string format_counted(std::uint64_t count, const std::string& one, const std::string& many) {
    return fmt::format("{} {}", format_count(count), count == 1 ? one : many.empty() ? one + "s" : many);
}

std::string format_bytes(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} B", bytes);
    auto value = static_cast<double>(bytes);
    const char* unit = "";
    for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
        if (value < 1024) break;
        value /= 1024;
        unit = next;
    }
    return fmt::format("{:.1f} {}", value, unit);
}

std::string format_rate(double rate) {
    return rate == 0 ? "0" : fmt::format("{:.2e}", rate);
}

std::string format_age(std::uint64_t seconds) {
    constexpr std::uint64_t minute = 60;
    constexpr std::uint64_t hour = 60 * minute;
    constexpr std::uint64_t day = 24 * hour;
    if (seconds < 2 * minute) return fmt::format("{} s", seconds);
    if (seconds < 2 * hour) return fmt::format("{} min", seconds / minute);
    if (seconds < 2 * day) return fmt::format("{} h", seconds / hour);
    return fmt::format("{} days", seconds / day);
}

namespace {

struct FamilyText {
    int family;
    const char* name;
    const char* json_name;
    int first_bit; // of the 128 in which lengths are counted
};
constexpr FamilyText families[] = {{SIEVE_FAMILY_V4, "IPv4", "ipv4", 96},
                                   {SIEVE_FAMILY_V6, "IPv6", "ipv6", 0}};

// What each probe of a set of several fields compares.
std::vector<std::string> compound_probes(const sieve_probes& probes, int family) {
    std::vector<std::string> texts;
    for (int i = 0; i < probes.count[family]; i++)
        texts.push_back(describe_probe(
            {probes.length[family][i], probes.destination[family][i], probes.transport[family][i], 0},
            family));
    return texts;
}

} // namespace

std::string format_probes(std::uint32_t fields, const sieve_probes& probes) {
    std::string text;
    if (!sieve_is_one_address(fields)) {
        for (const auto& [family, name, json_name, first_bit] : families)
            if (probes.count[family] > 0)
                text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name,
                                    fmt::join(compound_probes(probes, family), ", "));
        return text;
    }
    for (const auto& [family, name, json_name, first_bit] : families) {
        if (probes.count[family] == 0) continue;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
        for (int i = 0; i < probes.count[family]; i++)
            text += fmt::format(" /{}", probes.length[family][i] - first_bit);
    }
    return text;
}

nlohmann::json probes_to_json(std::uint32_t fields, const sieve_probes& probes) {
    nlohmann::json out = nlohmann::json::object();
    if (!sieve_is_one_address(fields)) {
        for (const auto& [family, name, json_name, first_bit] : families)
            if (probes.count[family] > 0) out[json_name] = compound_probes(probes, family);
        return out;
    }
    for (const auto& [family, name, json_name, first_bit] : families)
        for (int i = 0; i < probes.count[family]; i++)
            out[json_name].push_back(probes.length[family][i] - first_bit);
    return out;
}

} // namespace sieve::cli
