// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/whole_lists.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <variant>

#include <fmt/core.h>

#include "libsieve/keys/address_key.hpp"
#include "libsieve/keys/address_ranges.hpp"
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

} // namespace

WholeLists::Read WholeLists::read(const SetConfiguration& set, const SandboxSettings& sandbox,
                                  std::optional<KnownList> known) {
    auto origins = origins_of(sources_of_lists(set));
    if (!origins) {
        origins.error().message = fmt::format("set {}: {}", set.name, origins.error().message);
        return tl::unexpected(std::move(origins.error()));
    }
    if (origins->empty()) return std::pair(Content(), KnownList()); // such as a folder without a file
    SIEVE_ASSIGN(auto answer, read_in_sandbox({.set = set.name,
                                               .origins = std::move(*origins),
                                               .feed = set.feed,
                                               .known = std::move(known),
                                               .sandbox = sandbox}));
    if (auto* unchanged = std::get_if<UnchangedList>(&answer))
        return std::pair(Content{.entries = {}, .remarks = {}, .unchanged = true},
                         std::move(unchanged->known));
    auto& list = std::get<ReadList>(answer);
    if (!list.list)
        return tl::unexpected(
            Error{ErrorKind::bad_input,
                  fmt::format("set {}: {}: found an image, expected a list, whose keys can change in place",
                              set.name, list.label),
                  {}});
    return std::pair(
        Content{.entries = entries_of(*list.list, set.feed.fields), .remarks = std::move(list.remarks)},
        std::move(list.known));
}

void WholeLists::begin() {
    if (reads()) return;
    stamps_ = stamps();
    reading_.begin([this, known = kept_] { return read(set_, sandbox_, known); });
}

std::optional<tl::expected<WholeLists::Content, GatherFailure>> WholeLists::result() {
    std::optional<Read> done = reading_.result();
    if (!done) return std::nullopt;
    if (!*done) return tl::unexpected(std::move(done->error()));
    read_ = std::move((*done)->second);
    return std::move((*done)->first);
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
