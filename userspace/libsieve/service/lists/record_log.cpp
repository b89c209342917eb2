// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/record_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/core.h>
#include <xxhash.h>

#include "libsieve/util/files/output.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

// No log becomes so long. A file system that is damaged may say anything of a file's length.
constexpr std::uint64_t longest_log = std::uint64_t{16} << 30;

// All numbers are little-endian, as on every supported machine.
struct RecordHeader {
    std::uint64_t checksum; // of all that follows: the rest of the header, and the payload
    std::uint64_t number;
    std::uint64_t bytes; // of the payload
    std::uint32_t type;
    std::uint32_t reserved;
};
static_assert(sizeof(RecordHeader) == 32 && sizeof(RecordHeader) % record_step == 0);
static_assert(std::has_unique_object_representations_v<RecordHeader>);

// The bytes hold enough.
RecordHeader header_of(std::string_view text) {
    RecordHeader header;
    std::memcpy(&header, text.data(), sizeof(header));
    return header;
}

std::uint64_t checksum_of(std::string_view record) {
    return XXH3_64bits(record.data() + sizeof(std::uint64_t), record.size() - sizeof(std::uint64_t));
}

std::string record_of(std::uint32_t type, std::uint64_t number, const std::string& payload) {
    RecordHeader header{0, number, payload.size(), type, 0};
    std::string record;
    record.reserve(sizeof(header) + payload.size());
    record.append(reinterpret_cast<const char*>(&header), sizeof(header));
    record += payload;
    header.checksum = checksum_of(record);
    std::memcpy(record.data(), &header.checksum, sizeof(header.checksum));
    return record;
}

// The record that `text` begins with, without its header. Nothing: it is cut short, or its checksum is
// another one.
struct ReadRecord {
    RecordHeader header;
    std::string_view payload;
};
std::optional<ReadRecord> take_record(std::string_view text) {
    if (text.size() < sizeof(RecordHeader)) return std::nullopt;
    const RecordHeader header = header_of(text);
    const std::string_view rest = text.substr(sizeof(header));
    if (header.bytes > rest.size()) return std::nullopt;
    if (header.checksum != checksum_of(text.substr(0, sizeof(header) + header.bytes))) return std::nullopt;
    return ReadRecord{header, rest.substr(0, header.bytes)};
}

// Whether a valid record later than `next` is anywhere in the text.
bool has_later_record(std::string_view text, std::uint64_t next) {
    for (; text.size() >= sizeof(RecordHeader); text.remove_prefix(record_step)) {
        const std::uint64_t number = header_of(text).number;
        // Only what may be one costs a checksum.
        if (number > next && number - next <= text.size() / sizeof(RecordHeader) && take_record(text))
            return true;
    }
    return false;
}

// Whether the text, which no valid record begins, may be a part of the next one: its writing was interrupted,
// or goes on. Zero bytes are the end of a file that had grown when the machine failed. A whole record with
// another checksum is damaged, also where nothing but its length is.
bool may_be_cut_off(std::string_view text, std::uint64_t next) {
    if (text.size() < sizeof(RecordHeader) || text.find_first_not_of('\0') == std::string_view::npos)
        return true;
    RecordHeader header = header_of(text);
    const std::uint64_t rest = text.size() - sizeof(header);
    if (header.number != next || header.reserved != 0 || header.bytes % record_step != 0 ||
        header.bytes <= rest)
        return false;
    header.bytes = rest;
    std::string whole(text);
    std::memcpy(whole.data(), &header, sizeof(header));
    return header.checksum != checksum_of(whole);
}

tl::unexpected<Error> fault(const std::string& path, const std::string& what) {
    return bad_input(fmt::format("{}: {}", printable(path), what));
}

Result<std::string> read_from(int file, std::uint64_t at, const std::string& path) {
    struct stat info {};
    if (::fstat(file, &info) != 0) return fault(path, "cannot be read: " + errno_text(errno));
    const auto size = static_cast<std::uint64_t>(info.st_size);
    if (size > longest_log) return fault(path, fmt::format("larger than {} bytes, the limit", longest_log));
    std::string text(size > at ? size - at : 0, '\0');
    std::size_t got = 0;
    while (got < text.size()) {
        const ssize_t more =
            ::pread(file, text.data() + got, text.size() - got, static_cast<off_t>(at + got));
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return fault(path, "cannot be read: " + errno_text(errno));
        if (more == 0) break;
        got += static_cast<std::size_t>(more);
    }
    text.resize(got);
    return text;
}

} // namespace

Result<RecordLog> RecordLog::create(const std::string& path, const LogKind& kind,
                                    const std::vector<LogRecord>& records) {
    std::string text(kind.magic);
    std::uint64_t next = 0;
    for (const LogRecord& record : records) text += record_of(record.type, next++, record.payload);
    const std::string name = fmt::format("{} of xdp-sieve", kind.name);
    const OutputKind output{.name = name.c_str(), .beginnings = {kind.magic}, .mode = 0600};
    SIEVE_TRY(write_output(path, text, output, Replace::own));
    UniqueFd file(::open(path.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
    if (!file) return fault(path, "cannot be written: " + errno_text(errno));
    return RecordLog(path, std::move(file), text.size(), next);
}

Result<RecordLog> RecordLog::open(const std::string& path, const LogKind& kind) {
    constexpr int flags = O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    UniqueFd file(::open(path.c_str(), O_RDWR | flags));
    // Of a file system that cannot be written, because it has errors, all that it has counts.
    const bool read_only = !file && errno == EROFS;
    if (read_only) file = UniqueFd(::open(path.c_str(), O_RDONLY | flags));
    std::string magic(kind.magic.size(), '\0');
    const ssize_t got = file ? ::pread(file.get(), magic.data(), magic.size(), 0) : -1;
    if (got < 0) return fault(path, "cannot be read: " + errno_text(errno));
    if (static_cast<std::size_t>(got) != magic.size() || magic != kind.magic)
        return fault(path, fmt::format("is no {} of this version", kind.name));
    RecordLog log(path, std::move(file), magic.size(), 0);
    log.read_only_ = read_only;
    return log;
}

Result<bool> RecordLog::read_on(const Take& take) {
    SIEVE_ASSIGN(const std::string whole, read_from(file_.get(), bytes_, path_));
    std::string_view text = whole;
    while (const std::optional<ReadRecord> record = take_record(text)) {
        if (record->header.number != next_ || !take(record->header.type, record->payload)) break;
        const std::size_t length = sizeof(RecordHeader) + record->payload.size();
        next_++;
        bytes_ += length;
        text.remove_prefix(length);
    }
    if (text.empty()) return false;
    const bool followed = has_later_record(text, next_);
    if (!followed && may_be_cut_off(text, next_)) return true;
    return fault(path_,
                 fmt::format("record {} is damaged{}", next_, followed ? ", and valid ones follow it" : ""));
}

Status RecordLog::cut_end() {
    if (read_only_) return fault(path_, "its torn end cannot be cut off: " + errno_text(EROFS));
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0)
        return fault(path_, "its torn end cannot be cut off: " + errno_text(errno));
    return {};
}

Status RecordLog::append(std::uint32_t type, const std::string& payload, bool flush) {
    if (read_only_) return fault(path_, "cannot be written: " + errno_text(EROFS));
    const std::string record = record_of(type, next_, payload);
    int error = write_whole(file_.get(), record);
    if (error == 0 && flush && ::fdatasync(file_.get()) != 0) error = errno;
    if (error != 0) {
        // What was written of it would hide all that follows.
        if (!cut_end()) file_ = UniqueFd();
        return fault(path_, "cannot be written: " + errno_text(error));
    }
    bytes_ += record.size();
    next_++;
    return {};
}

} // namespace sieve::service
