// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <xxhash.h>

#include "libsieve/service/lists/claim_record.hpp"
#include "libsieve/util/output.hpp"
#include "libsieve/util/printable.hpp"
#include "libsieve/util/write_all.hpp"

namespace sieve::service::live {

namespace {

constexpr std::string_view magic = "xdp-sieve journal 1\n";

constexpr std::uint32_t change_record = 1;
constexpr std::uint32_t done_record = 2;

// All numbers are little-endian, as on every supported machine.
struct RecordHeader {
    std::uint64_t checksum; // of all that follows: the rest of the header, and the payload
    std::uint64_t number;
    std::uint64_t bytes; // of the payload
    std::uint32_t type;
    std::uint32_t reserved;
};
static_assert(sizeof(RecordHeader) == 32);

// The lengths of all records are multiples of it.
constexpr std::size_t record_step = 8;
static_assert(sizeof(RecordHeader) % record_step == 0 && claim_record_bytes % record_step == 0);

struct ChangeHead {
    std::uint64_t removed;
    std::uint64_t added;
};

struct DoneRecord {
    std::uint64_t map_id;
    std::uint64_t changes;
};

const OutputKind journal_output{.name = "journal of xdp-sieve", .beginnings = {magic}, .mode = 0600};

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

std::uint64_t checksum_of(std::string_view record) {
    return XXH3_64bits(record.data() + sizeof(std::uint64_t), record.size() - sizeof(std::uint64_t));
}

std::string payload_of(const ClaimChange& change) {
    std::string payload;
    put(payload, ChangeHead{change.removed.size(), change.added.size()});
    append_claims(payload, change.removed);
    append_claims(payload, change.added);
    return payload;
}

std::string record_of(std::uint32_t type, std::uint64_t number, const std::string& payload) {
    std::string record;
    record.reserve(sizeof(RecordHeader) + payload.size());
    put(record, RecordHeader{0, number, payload.size(), type, 0});
    record += payload;
    const std::uint64_t checksum = checksum_of(record);
    std::memcpy(record.data(), &checksum, sizeof(checksum));
    return record;
}

std::optional<ClaimChange> change_of(std::string_view payload) {
    if (payload.size() < sizeof(ChangeHead)) return std::nullopt;
    const auto head = take<ChangeHead>(payload);
    const std::uint64_t records = payload.size() / claim_record_bytes;
    if (payload.size() % claim_record_bytes != 0 || head.removed > records ||
        head.added != records - head.removed)
        return std::nullopt;
    ClaimChange change;
    if (!take_claims(payload, head.removed, change.removed) ||
        !take_claims(payload, head.added, change.added))
        return std::nullopt;
    return change;
}

std::optional<std::vector<NotedFilter>> filters_of(std::string_view payload) {
    if (payload.size() % sizeof(DoneRecord) != 0) return std::nullopt;
    std::vector<NotedFilter> filters;
    while (!payload.empty()) {
        const auto record = take<DoneRecord>(payload);
        filters.push_back({static_cast<std::uint32_t>(record.map_id), record.changes});
    }
    return filters;
}

// The record that `text` begins with, without its header. Nothing: it is cut short, or its checksum is
// another one.
struct ReadRecord {
    RecordHeader header;
    std::string_view payload;
};
std::optional<ReadRecord> take_record(std::string_view text) {
    if (text.size() < sizeof(RecordHeader)) return std::nullopt;
    std::string_view rest = text;
    const auto header = take<RecordHeader>(rest);
    if (header.bytes > rest.size()) return std::nullopt;
    if (header.checksum != checksum_of(text.substr(0, sizeof(RecordHeader) + header.bytes)))
        return std::nullopt;
    return ReadRecord{header, rest.substr(0, header.bytes)};
}

// Whether a valid record later than `next` is anywhere in the text.
bool has_later_record(std::string_view text, std::uint64_t next) {
    for (; text.size() >= sizeof(RecordHeader); text.remove_prefix(record_step)) {
        std::string_view rest = text;
        const std::uint64_t number = take<RecordHeader>(rest).number;
        // Only what may be one costs a checksum.
        if (number > next && number - next <= text.size() / sizeof(RecordHeader) && take_record(text))
            return true;
    }
    return false;
}

// Reads records from `text` on until one is cut short or wrong. Returns the bytes of those before it.
std::size_t read_records(std::string_view text, Journal::Content& content, std::uint64_t& next) {
    const std::size_t all = text.size();
    while (const std::optional<ReadRecord> record = take_record(text)) {
        const auto& [header, payload] = *record;
        if (header.number != next) break;
        if (header.type == change_record) {
            std::optional<ClaimChange> change = change_of(payload);
            if (!change) break;
            content.changes.push_back(std::move(*change));
            content.finished = false;
        } else if (header.type == done_record) {
            std::optional<std::vector<NotedFilter>> filters = filters_of(payload);
            if (!filters) break;
            content.filters = std::move(*filters);
            content.finished = true;
        } else {
            break;
        }
        next++;
        text.remove_prefix(sizeof(RecordHeader) + payload.size());
    }
    return all - text.size();
}

tl::unexpected<Error> fault(const std::string& path, const std::string& what) {
    return bad_input(fmt::format("{}: {}", printable(path), what));
}

} // namespace

Result<Journal> Journal::create(const std::string& path, const std::vector<ClaimChange>& changes) {
    std::string text(magic);
    std::uint64_t next = 0;
    for (const ClaimChange& change : changes) text += record_of(change_record, next++, payload_of(change));
    SIEVE_TRY(write_output(path, text, journal_output, Replace::anything));
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
    if (!file) return fault(path, "cannot be written: " + errno_text(errno));
    return Journal(path, std::move(file), text.size(), next);
}

Result<Journal> Journal::open(const std::string& path, Content& content) {
    UniqueFd file(::open(path.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) return fault(path, "cannot be read: " + errno_text(errno));
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t got = 0;
    while (got < text.size()) {
        const ssize_t more =
            ::pread(file.get(), text.data() + got, text.size() - got, static_cast<off_t>(got));
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return fault(path, "cannot be read: " + errno_text(errno));
        if (more == 0) break;
        got += static_cast<std::size_t>(more);
    }
    text.resize(got);
    if (!std::string_view(text).starts_with(magic)) return fault(path, "is no journal of this version");
    content = {};
    std::uint64_t next = 0;
    const std::size_t whole =
        magic.size() + read_records(std::string_view(text).substr(magic.size()), content, next);
    content.torn = whole < text.size();
    if (content.torn && has_later_record(std::string_view(text).substr(whole), next))
        return fault(path, fmt::format("record {} is damaged, and valid ones follow it", next));
    if (content.torn && ::ftruncate(file.get(), static_cast<off_t>(whole)) != 0)
        return fault(path, "its torn end cannot be cut off: " + errno_text(errno));
    return Journal(path, std::move(file), whole, next);
}

Status Journal::write_record(std::uint32_t type, const std::string& payload) {
    const std::string record = record_of(type, next_, payload);
    if (const int error = write_whole(file_.get(), record); error != 0) {
        // What was written of it would hide all that follows.
        if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) file_ = UniqueFd();
        return fault(path_, "cannot be written: " + errno_text(error));
    }
    bytes_ += record.size();
    next_++;
    return {};
}

Status Journal::append(const ClaimChange& change) {
    return write_record(change_record, payload_of(change));
}

Status Journal::append_done(const std::vector<NotedFilter>& filters) {
    std::string payload;
    for (const NotedFilter& filter : filters) put(payload, DoneRecord{filter.map_id, filter.changes});
    return write_record(done_record, payload);
}

} // namespace sieve::service::live
