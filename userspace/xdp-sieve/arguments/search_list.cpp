// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/search_list.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libsieve/feeds/find_keys.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/service/reconcile/refresh.hpp"

namespace sieve::cli {

namespace {

Result<std::string> find_place(const std::vector<std::string>& feeds, const KeySet& keys) {
    SIEVE_ASSIGN(std::vector<Input> inputs, Input::of_all(feeds));
    SIEVE_ASSIGN(
        std::vector<std::string> places,
        find_keys(inputs, keys, {.format = {}, .skip_invalid = true, .ranges = true, .key_ranges = true}));
    return std::move(places.front());
}

KeySet one_key(const sieve_key& key, std::uint32_t fields) {
    KeySet keys(fields);
    keys.add(key);
    return keys;
}

// Whether the list has the key: then nothing of the key is left without the list.
bool holds(Feed list, const KeySet& key) {
    Members rest(key, {});
    const auto taken = subtract(rest, members_of(std::move(list)));
    return taken && rest.empty();
}

} // namespace

Result<Searched> search_feeds(const std::vector<std::string>& feeds, const control::SetAnswer& answer,
                              const sieve_key& key) {
    Searched searched;
    SIEVE_ASSIGN(searched.place, find_place(feeds, one_key(key, answer.status.filter.lookup.fields)));
    // A label names each of the set's lists, with a blank between them.
    const std::string label = label_text(answer.status.filter.file);
    const auto lists = static_cast<std::size_t>(std::count(label.begin(), label.end(), ' ')) + 1;
    const bool cut_short = label.size() + 1 >= sizeof(answer.status.filter.file.label);
    if (lists > feeds.size() || cut_short) searched.all_lists = label;
    return searched;
}

std::optional<Searched> search_kept_list(const control::SetAnswer& answer, const sieve_key& key) {
    const std::optional<service::watching::Manager> manager = service::watching::find_manager();
    if (!manager) return std::nullopt;
    const auto state = service::StateDirectory::look(manager->state, service::standard_spare(manager->state));
    const std::string& name = answer.status.set.name;
    const auto record = state.read(name, [](const std::string&) {});
    if (!record || record->identity != service::identity_text(answer.status.filter.file)) return std::nullopt;
    service::SetConfiguration set;
    set.name = name;
    set.feed.fields = answer.status.filter.lookup.fields;
    Result<Feed> list = service::last_good_list(set, *record, state);
    if (!list) return std::nullopt;
    const KeySet keys = one_key(key, set.feed.fields);
    if (!holds(std::move(*list), keys)) return Searched{};
    // The line, if the key is in a file; or else what the list was made of.
    std::vector<std::string> sources;
    for (const service::SourceProvenance& source : record->sources) {
        sources.push_back(source.source);
        if (!source.source.starts_with('/')) continue;
        if (const Result<std::string> place = find_place({source.source}, keys); place && !place->empty())
            return Searched{.place = *place};
    }
    return Searched{.place = fmt::format("on the last good list, of {}", fmt::join(sources, ", "))};
}

} // namespace sieve::cli
