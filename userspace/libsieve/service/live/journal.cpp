// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/journal.hpp"

#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "libsieve/service/lists/timed_entry_record.hpp"

namespace sieve::service::live {

namespace {

constexpr LogKind journal_kind{.magic = "xdp-sieve journal 1\n", .name = "journal"};

constexpr std::uint32_t change_record = 1;
constexpr std::uint32_t old_record = 2; // of a version that noted filters: says nothing any more

// All numbers are little-endian, as on every supported machine.
static_assert(timed_entry_record_bytes % record_step == 0);

struct ChangeHead {
    std::uint64_t removed;
    std::uint64_t added;
};

template <class Record>
void put(std::string& to, const Record& record) {
    static_assert(std::has_unique_object_representations_v<Record>);
    to.append(reinterpret_cast<const char*>(&record), sizeof(record));
}

// The bytes hold enough.
template <class Record>
Record take(std::string_view& from) {
    Record record;
    std::memcpy(&record, from.data(), sizeof(record));
    from.remove_prefix(sizeof(record));
    return record;
}

std::string payload_of(const EntryChange& change) {
    std::string payload;
    put(payload, ChangeHead{change.removed.size(), change.added.size()});
    append_entries(payload, change.removed);
    append_entries(payload, change.added);
    return payload;
}

std::optional<EntryChange> change_of(std::string_view payload) {
    if (payload.size() < sizeof(ChangeHead)) return std::nullopt;
    const auto head = take<ChangeHead>(payload);
    const std::uint64_t records = payload.size() / timed_entry_record_bytes;
    if (payload.size() % timed_entry_record_bytes != 0 || head.removed > records ||
        head.added != records - head.removed)
        return std::nullopt;
    EntryChange change;
    if (!take_entries(payload, head.removed, change.removed) ||
        !take_entries(payload, head.added, change.added))
        return std::nullopt;
    return change;
}

// False: it is no record of a journal.
bool take_into(Journal::Content& content, std::uint32_t type, std::string_view payload) {
    if (type == old_record) return true;
    std::optional<EntryChange> change = type == change_record ? change_of(payload) : std::nullopt;
    if (change) content.changes.push_back(std::move(*change));
    return change.has_value();
}

Result<Journal::Content> content_of(RecordLog& log) {
    Journal::Content content;
    SIEVE_ASSIGN(content.torn, log.read_on([&](std::uint32_t type, std::string_view payload) {
        return take_into(content, type, payload);
    }));
    return content;
}

} // namespace

bool Journal::is_empty(const std::string& path) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    return error || bytes <= journal_kind.magic.size();
}

Result<Journal> Journal::create(const std::string& path, const std::vector<EntryChange>& changes) {
    std::vector<LogRecord> records;
    for (const EntryChange& change : changes) records.push_back({change_record, payload_of(change)});
    SIEVE_ASSIGN(RecordLog log, RecordLog::create(path, journal_kind, records));
    return Journal(std::move(log));
}

Result<Journal::Content> Journal::read(const std::string& path) {
    SIEVE_ASSIGN(RecordLog log, RecordLog::open(path, journal_kind));
    return content_of(log);
}

Result<Journal> Journal::open(const std::string& path, Content& content) {
    SIEVE_ASSIGN(RecordLog log, RecordLog::open(path, journal_kind));
    SIEVE_ASSIGN(content, content_of(log));
    if (content.torn) SIEVE_TRY(log.cut_end());
    return Journal(std::move(log));
}

Status Journal::append(const EntryChange& change) {
    return log_.append(change_record, payload_of(change));
}

} // namespace sieve::service::live
