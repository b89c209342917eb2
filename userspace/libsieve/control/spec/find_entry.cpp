// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/find_entry.hpp"

#include <algorithm>
#include <utility>

#include "libsieve/control/spec/source.hpp"
#include "libsieve/feeds/find_keys.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/files/input.hpp"

namespace sieve::control {

namespace {

std::optional<Input> open_again(const SetSpec& set, const std::string& source) {
    auto input = open_source(set, source);
    if (!input || input->is_stream()) return std::nullopt;
    const auto image = is_image(*input);
    if (!image || *image) return std::nullopt;
    return std::move(*input);
}

} // namespace

bool can_find_entries(const SetSpec& set) {
    return !set.sources.empty() &&
           std::all_of(set.sources.begin(), set.sources.end(),
                       [&](const std::string& source) { return open_again(set, source).has_value(); });
}

std::optional<std::string> find_entry(const SetSpec& set, const sieve_key& key) {
    KeySet keys(set.feed.fields);
    keys.add(key);
    for (const std::string& source : set.sources) {
        std::optional<Input> input = open_again(set, source);
        if (!input) continue;
        const auto found = find_keys({&*input, 1}, keys,
                                     {.format = set.feed.format,
                                      .skip_invalid = set.feed.skip_invalid,
                                      .ranges = true,
                                      .key_ranges = true,
                                      .mask_host_bits = set.feed.mask_host_bits});
        if (found && !found->front().empty()) return found->front();
    }
    return std::nullopt;
}

} // namespace sieve::control
