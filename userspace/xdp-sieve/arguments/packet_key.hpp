// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The names of a packet's key and verdict in --json output.
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include <sieve/key.h>

namespace sieve::cli {

// The fields in `have`; the other fields are null.
nlohmann::ordered_json key_json(const sieve_key& key, std::uint32_t have);

// "drop", "pass" or "redirect" for an XDP_* value.
const char* verdict_name(std::uint32_t verdict);

} // namespace sieve::cli
