// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/exact_keys.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include <sieve/exact.h>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/prefixes/key_expansion.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/filters/prefixes/prefix_expansion.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

// Finds out how the image's builder expanded these ranges. The builder's limits are not in the image, but
// they show in the lengths that it chose. Empty if no limit leads to these lengths.
std::optional<PrefixPlan> plan_of_image(const std::vector<AddressRange>& ranges, const Image& image) {
    for (std::uint32_t probes = 1; probes <= SIEVE_MAX_PROBES; probes++) {
        auto plan = plan_prefixes(
            ranges, {.max_probes = probes, .max_keys = std::numeric_limits<std::uint64_t>::max()});
        if (plan && std::memcmp(&plan->probes, &image.probes(), sizeof(sieve_probes)) == 0)
            return std::move(*plan);
    }
    return std::nullopt;
}

// Likewise for ranges of keys.
std::optional<KeyPlan> plan_of_image(const Members& members, const Image& image) {
    // The plan counts an entry without addresses for each family.
    const std::uint64_t most = SIEVE_FAMILIES * (image.file().keys + image.file().duplicates);
    for (std::uint32_t probes = 1; probes <= SIEVE_MAX_PROBES; probes++) {
        auto plan = plan_keys(members.keys, members.key_ranges, {.max_probes = probes, .max_keys = most});
        if (plan && std::memcmp(&plan->probes, &image.probes(), sizeof(sieve_probes)) == 0)
            return std::move(*plan);
    }
    return std::nullopt;
}

tl::unexpected<Error> non_member(const std::string& feed, const std::string& why) {
    return bad_input(
        fmt::format("{}: not what the image was built of ({}), so it cannot verify its matches", feed, why));
}

// The address of a stored prefix, as it would stand in a packet's key.
sieve_key address_of(const sieve_key& exact, std::uint32_t fields) {
    sieve_key key{};
    key.word[sieve_address_word(fields)] = exact.word[0];
    key.word[sieve_address_word(fields) + 1] = exact.word[1];
    return key;
}

// The probe that asks for a stored key.
sieve_probe stored_probe(const sieve_key& key) {
    const std::uint64_t probe = key.word[4] >> SIEVE_STORED_PROBE_SHIFT;
    return {static_cast<__u8>(probe), static_cast<__u8>(probe >> 8), static_cast<__u8>(probe >> 16), 0};
}

// Of a prefix set that changes while it is in force: its entries, marked, and what is stored for them.
Result<std::vector<sieve_key>> exact_entries(const Members& members, const Image& image,
                                             const std::string& feed) {
    const std::vector<sieve_key> entries = entries_of(members);
    const StoredKeys stored(image.lookup(), image.probes());
    double keys = 0;
    for (const sieve_key& entry : entries) keys += stored.count(entry);
    if (keys != static_cast<double>(image.file().keys))
        return non_member(feed, fmt::format("{:.0f} {} instead of {}", keys,
                                            keys == 1 ? "prefix" : "prefixes", image.file().keys));
    std::vector<sieve_key> exact = exact_of_entries(entries, stored);
    const bool all_known = std::all_of(exact.begin(), exact.end(), [&](const sieve_key& key) {
        return entry_marked_by(key) ||
               image.kind().holds(image.lookup(), stored.hash(key), image.filter().data());
    });
    if (!all_known) return non_member(feed, "as many keys, but not the same");
    return exact;
}

} // namespace

Result<std::vector<sieve_key>> exact_keys(Members members, const Image& image, const std::string& feed) {
    if (!image.exceptions().empty())
        SIEVE_TRY(subtract(members, members_of(image.exceptions(), members.fields())));
    const auto& [keys, ranges, key_ranges] = members;
    const std::uint32_t fields = image.lookup().fields;
    const bool prefixes = image.lookup().probes > 0;
    if (prefixes && image.kind().facts().changes_live) return exact_entries(members, image, feed);
    std::vector<sieve_key> exact;
    if (!prefixes) {
        if (members.has_ranges()) return non_member(feed, "it has prefixes or ranges, the image has none");
        exact.resize(keys.size());
        for (std::size_t i = 0; i < keys.size(); i++) {
            const sieve_key key = keys.at(i);
            sieve_exact_of_key(&key, fields, &exact[i]);
        }
    } else if (!sieve_is_one_address(fields)) {
        std::optional<KeyPlan> plan = plan_of_image(members, image);
        if (!plan) return non_member(feed, "its entries lead to other probes");
        exact = std::move(plan->stored);
    } else {
        std::vector<AddressRange> all = ranges;
        const int word = sieve_address_word(fields);
        for (std::size_t i = 0; i < keys.size(); i++) {
            const sieve_key key = keys.at(i);
            const uint128 address = address_number(key.word[word], key.word[word + 1]);
            all.push_back({address, address});
        }
        const std::optional<PrefixPlan> plan = plan_of_image(all, image);
        if (!plan) return non_member(feed, "its prefixes lead to other lengths");
        // Checked before the keys are made: a wrong number cannot be the right feed, and too many keys would
        // take memory.
        if (plan->keys != image.file().keys)
            return non_member(feed, fmt::format("{} instead of {}", counted(plan->keys, "prefix", "prefixes"),
                                                image.file().keys));
        expand_prefixes(*plan, [&](std::uint64_t upper, std::uint64_t lower, std::uint32_t length) {
            sieve_exact_of_prefix(upper, lower, length, &exact.emplace_back());
        });
    }
    std::sort(exact.begin(), exact.end(), key_order);
    exact.erase(std::unique(exact.begin(), exact.end(), same_key), exact.end());
    if (exact.size() != image.file().keys)
        return non_member(feed,
                          fmt::format("{} instead of {}", counted(exact.size(), "key"), image.file().keys));
    const bool all_known = std::all_of(exact.begin(), exact.end(), [&](const sieve_key& key) {
        if (prefixes && !sieve_is_one_address(fields)) return image.holds(key, stored_probe(key));
        return image.contains(prefixes ? address_of(key, fields) : key);
    });
    if (!all_known) return non_member(feed, "as many keys, but not the same");
    return exact;
}

} // namespace sieve
