// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/list_keys.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include <fmt/core.h>
#include <sieve/exact.h>
#include <sieve/inserted.h>

#include "libsieve/control/keys/exact_set.hpp"
#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/feeds/text/prefix_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve::control {

namespace {

using Words = std::array<__u64, SIEVE_KEY_WORDS>;

constexpr std::uint32_t v4_prefix_bits = 96; // of a v4-mapped address

// How many of the keys in the filter the listed ones are.
Result<std::uint64_t> count_stored(Filters& kernel, const kernel::SetInForce& set, const KeyList& list) {
    if (!list.prefixes) return list.keys.size();
    SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(set.map_id));
    const StoredKeys stored(filter->lookup(), filter->probes());
    double keys = 0;
    for (const ListedKey& one : list.keys) keys += stored.count(one.key);
    return static_cast<std::uint64_t>(std::min(keys, 0x1p63));
}

void sort_keys(std::vector<ListedKey>& keys) {
    std::ranges::sort(keys, key_order, &ListedKey::key);
}

// What a filter of ranges holds, as the fewest prefixes. It does not change while it is in force. An IPv6
// range that includes the v4-mapped addresses does not mean IPv4.
Result<std::vector<ListedKey>> list_ranges(Filters& kernel, const ExactKind& kind, std::uint32_t map_id) {
    SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(map_id));
    const std::uint32_t fields = filter->lookup().fields;
    std::vector<AddressRange> ranges[SIEVE_FAMILIES];
    SIEVE_TRY(kind.for_each_range(filter->lookup(), filter->lines(), [&](const AddressRange& range) {
        ranges[family_of(range)].push_back(range);
    }));
    std::vector<ListedKey> keys;
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        for (const sieve_key& entry :
             entries_of(Members(KeySet(fields), merge_ranges(std::move(ranges[family])))))
            if (family_of(entry, fields) == family) keys.push_back({.key = entry});
    return keys;
}

} // namespace

Result<KeyList> list_keys(Kernel& kernel, const HookName& name, const std::string& set) {
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(const TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(const kernel::FilterHeader filter, kernel.read_filter(now.set.map_id));
    KeyList list{.point = hook.point,
                 .fields = filter.lookup.fields,
                 .prefixes = filter.lookup.probes != 0,
                 .whole = now.verified()};
    if (lists_and_changes(filter.lookup)) {
        list.whole = true;
        list.marks = kind_of(filter.lookup).exact()->has_marks(filter.lookup);
        SIEVE_ASSIGN(list.keys, list_exact_set(kernel, set, now.set.map_id));
        sort_keys(list.keys);
        return list;
    }
    if (const ExactKind* const exact = kind_of(filter.lookup).exact(); exact != nullptr) {
        list.whole = list.prefixes = true;
        SIEVE_ASSIGN(list.keys, list_ranges(kernel, *exact, now.set.map_id));
        sort_keys(list.keys);
        return list;
    }
    std::map<Words, std::optional<std::int64_t>> keys;
    if (now.verified()) {
        SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> exact, kernel.open_exact(now.set.exact_id));
        SIEVE_ASSIGN(const std::vector<kernel::NotedKey> all, exact->all());
        const bool entries = list.prefixes && kind_of(filter.lookup).facts().changes_live;
        for (const kernel::NotedKey& one : all) {
            if (one.note.state != SIEVE_EXACT_IN) continue;
            const std::optional<sieve_key> key = entries ? entry_marked_by(one.key) : one.key;
            if (key) keys[std::to_array(key->word)] = std::nullopt;
        }
    }
    if (now.set.inserted_id != 0) {
        SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> inserted, kernel.open_inserted(now.set.inserted_id));
        SIEVE_ASSIGN(const std::vector<kernel::NotedKey> all, inserted->all());
        const std::uint64_t at = kernel.boot_time();
        for (const kernel::NotedKey& one : all) {
            const Words words = std::to_array(one.key.word);
            if (one.note.state != SIEVE_INSERTED_IN || (list.whole && !keys.contains(words))) continue;
            keys[words] = static_cast<std::int64_t>(one.note.end - at);
        }
    }
    for (const auto& [words, ends_in] : keys) {
        ListedKey one{.ends_in = ends_in};
        std::copy(words.begin(), words.end(), std::begin(one.key.word));
        list.keys.push_back(one);
    }
    if (list.whole) return list;
    SIEVE_ASSIGN(const std::uint64_t listed, count_stored(kernel, now.set, list));
    list.unlisted = filter.file.keys - std::min<std::uint64_t>(filter.file.keys, listed);
    if (list.keys.empty() && list.unlisted > 0)
        return failure(
            ErrorKind::no,
            fmt::format(
                "set {} has {}, none of which is known: a filter cannot list its keys, the set is not "
                "verified, and no key was inserted for a time",
                set, counted(list.unlisted, "key")),
            {.interface = name.interface, .set = set});
    return list;
}

std::string entry_text(const sieve_key& prefix, std::uint32_t fields) {
    if (!sieve_is_one_address(fields)) return format_prefix(prefix_of(prefix, fields), fields);
    const std::uint32_t length = form_of(prefix, fields).source;
    const bool v4 = family_of(prefix, fields) == SIEVE_FAMILY_V4;
    return fmt::format("{}/{}", format_address(prefix.word[0], prefix.word[1]),
                       v4 ? length - v4_prefix_bits : length);
}

std::string listed_key_text(const ListedKey& listed, const KeyList& list) {
    return list.prefixes ? entry_text(listed.key, list.fields) : format_key(listed.key, list.fields);
}

} // namespace sieve::control
