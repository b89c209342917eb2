// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/whole_lists.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <variant>

#include <fmt/core.h>

#include "libsieve/keys/address_key.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/service/sources/kept_sources.hpp"
#include "libsieve/service/sources/origin.hpp"

namespace sieve::service::live {

namespace {

std::vector<TimedEntry> entries_of(const Feed& list, std::uint32_t fields) {
    constexpr std::uint64_t id = entry_id(0, list_origin);
    std::vector<TimedEntry> entries;
    entries.reserve(list.entries());
    for (std::size_t i = 0; i < list.keys.size(); i++)
        entries.push_back({Prefix{address_of_key(list.keys.at(i), fields)}, id, never});
    for (const AddressRange& range : list.ranges)
        split_into_prefixes(range, [&](uint128 first, std::uint32_t length) {
            entries.push_back({Prefix{first, static_cast<std::uint8_t>(length)}, id, never});
        });
    return entries;
}

using Sources = std::vector<SourceProvenance>;

// Whether the list has something of sources that the set no longer has.
bool is_of_other_sources(const SetRecord& record, const SetConfiguration& set) {
    const SourceIdentities now = source_identities(set.sources);
    const auto is_gone = [&](const SourceProvenance& one) { return !now.may_have(one.source); };
    return std::ranges::any_of(record.sources, is_gone) || std::ranges::any_of(record.beside, is_gone);
}

// But for times and validators.
bool same_contents(const Sources& a, const Sources& b) {
    return std::ranges::equal(a, b, [](const SourceProvenance& one, const SourceProvenance& other) {
        return one.source == other.source && one.digest == other.digest;
    });
}

} // namespace

WholeLists::Read WholeLists::read(const SetConfiguration& set, const SandboxSettings& sandbox,
                                  const StateDirectory& state, MayLack may_lack,
                                  std::optional<KnownList> known) {
    auto origins = origins_of(sources_of_lists(set));
    if (!origins) {
        origins.error().message = fmt::format("set {}: {}", set.name, origins.error().message);
        return tl::unexpected(std::move(origins.error()));
    }
    if (origins->empty()) return Lists(); // such as a folder without a file
    const SetRecord record = state.named(set.name).value_or(SetRecord());
    if (is_of_other_sources(record, set) || (may_lack == MayLack::never_taken && record.beside.empty()))
        may_lack = MayLack::none;
    ReadRequest request{.set = set.name,
                        .origins = std::move(*origins),
                        .feed = set.feed,
                        .known = std::move(known),
                        .sandbox = sandbox};
    request.kept = [&](const std::string& origin) {
        return kept_content(set.name, beside_stream, record.beside, state, origin);
    };
    request.may_lack = [&](const std::string& origin) {
        return may_lack == MayLack::all ||
               (may_lack == MayLack::never_taken && !has_said(record.beside, origin));
    };
    SIEVE_ASSIGN(auto answer, read_in_sandbox(request));
    if (auto* unchanged = std::get_if<UnchangedList>(&answer)) {
        Lists same{.known = std::move(unchanged->known), .visit = std::move(unchanged->visit)};
        same.content.unchanged = true;
        same.content.behind = std::move(same.visit.behind);
        return same;
    }
    auto& list = std::get<ReadList>(answer);
    if (!list.list)
        return tl::unexpected(
            Error{ErrorKind::bad_input,
                  fmt::format("set {}: {}: found an image, expected a list, whose keys can change in place",
                              set.name, list.label),
                  {}});
    Lists lists{.known = std::move(list.known), .visit = std::move(list.visit)};
    lists.content = {.entries = entries_of(*list.list, set.feed.fields),
                     .remarks = std::move(list.remarks),
                     .has_first_answer = has_first_answer(record.beside, lists.known.sources),
                     .behind = std::move(lists.visit.behind)};
    return lists;
}

void WholeLists::begin(MayLack may_lack) {
    if (reads()) return;
    stamps_ = stamps();
    reading_.begin(
        [this, may_lack, known = kept_] { return read(set_, sandbox_, *state_, may_lack, known); });
}

std::optional<tl::expected<WholeLists::Content, GatherFailure>> WholeLists::result() {
    std::optional<Read> done = reading_.result();
    if (!done) return std::nullopt;
    if (!*done) return tl::unexpected(std::move(done->error()));
    read_ = std::move((*done)->known);
    visit_ = std::move((*done)->visit);
    are_taken_ = false;
    return std::move((*done)->content);
}

bool WholeLists::are_noted() const {
    if (!are_taken_) return true;
    const std::optional<SetRecord> record = state_->named(set_.name);
    const bool has_contents = std::ranges::any_of(visit_.contents, [](const auto& one) { return !!one; });
    return record && !has_contents && same_contents(record->beside, read_->sources);
}

void WholeLists::note() {
    std::optional<SetRecord> record = state_->named(set_.name);
    if (!record) return;
    keep_contents(set_.name, beside_stream, std::exchange(visit_, {}), read_->sources, *state_);
    record->beside = read_->sources;
    if (!state_->commit(set_.name, *record)) forget(); // the next time they are read
}

WholeLists::Stamps WholeLists::stamps() const {
    Stamps all;
    const auto origins = origins_of(sources_of_lists(set_));
    if (!origins) return all;
    for (const Origin& origin : *origins)
        if (const auto* file = std::get_if<FileOrigin>(&origin)) {
            struct stat info {};
            const bool is_there = ::stat(file->path.c_str(), &info) == 0;
            all.emplace_back(file->path, is_there ? stamp_of(info) : FileStamp());
        }
    return all;
}

} // namespace sieve::service::live
