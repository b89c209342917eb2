// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Countries and networks by name, from the data that the configuration names (`geo` in [service]).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/feeds/text/list_format.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"
#include "xdp-sieve/arguments/context.hpp"

namespace sieve::cli {

// Puts the data in the place of sources such as "country:DE" or "asn:AS3320", and has the format choose them.
// Leaves other sources as they are. invalid_request: no data in files, or both sorts of sources together.
[[nodiscard]] Status find_geo_data(std::vector<std::string>& sources, ListFormat& format);

// read_set_argument(), with sources that may name countries and networks, too.
[[nodiscard]] Result<control::SetSpec> parse_set(const std::string& text, const Context& context);

// What the data says of the key's address, the source if it has one: "DE", "AS3320 (Deutsche Telekom AG)".
// Nothing without data in files, or without an address; a remark says why data cannot be read.
[[nodiscard]] std::vector<std::string> origin_of(const sieve_key& key, std::uint32_t fields,
                                                 const Context& context);

} // namespace sieve::cli
