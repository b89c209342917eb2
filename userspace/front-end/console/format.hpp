// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <sieve/image.h>

namespace sieve::cli {

std::string format_count(std::uint64_t count); // 1,234,567
// "1 key", "1,234 keys". Give `many` where the plural needs more than an s.
std::string format_counted(std::uint64_t count, const std::string& one, const std::string& many = {});
std::string format_bytes(std::uint64_t bytes); // 1.9 MiB
std::string format_rate(double rate);          // 2.63e-04, or 0
std::string format_age(std::uint64_t seconds); // 3 min, 5 h, 2 days

// The probes of a prefix set: of one address "IPv4 /16 /24, IPv6 /32", of several fields "IPv4: dst/24 dport,
// dst dport". Empty if it is no prefix set.
std::string format_probes(std::uint32_t fields, const sieve_probes& probes);
nlohmann::json probes_to_json(std::uint32_t fields, const sieve_probes& probes);

} // namespace sieve::cli
