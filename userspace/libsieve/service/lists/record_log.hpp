// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A file of records that only grows: what happened, one thing after another.
//
// Each record has its length, its type, a number that rises by one, and a checksum. A record that a crash cut
// short is no record: it begins as the next one would and the file ends before it does, or zero bytes follow
// up to the file's end. Whatever else has no valid checksum is damage, also at the end: it may have been
// answered.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

// The lengths of all payloads are multiples of it.
inline constexpr std::size_t record_step = 8;

struct LogKind {
    std::string_view magic; // the file's first bytes, a multiple of record_step or not
    std::string_view name;  // "journal"
};

struct LogRecord {
    std::uint32_t type = 0;
    std::string payload{};
};

class RecordLog {
  public:
    // Is given each record. False: it is no such record, and so damage.
    using Take = std::function<bool(std::uint32_t type, std::string_view payload)>;

    // A new file, in place of whatever is there. It has its name once all of this is on the disk.
    [[nodiscard]] static Result<RecordLog> create(const std::string& path, const LogKind& kind,
                                                  const std::vector<LogRecord>& records = {});
    // An existing one, of which nothing was read yet; on a read-only file system, to be read only. bad_input:
    // it is none of this kind.
    [[nodiscard]] static Result<RecordLog> open(const std::string& path, const LogKind& kind);

    // What was not read yet. True: a record at the end is cut short, or is being written. bad_input: the file
    // cannot be read, or is damaged.
    [[nodiscard]] Result<bool> read_on(const Take& take);
    // Cuts off what could not be read.
    [[nodiscard]] Status cut_end();
    // At the end, where all was read. An error leaves the file as it was. `flush`: the record is on the disk
    // when this returns.
    [[nodiscard]] Status append(std::uint32_t type, const std::string& payload, bool flush = false);

    [[nodiscard]] std::uint64_t bytes() const { return bytes_; } // that were read or written
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] int file() const { return file_.get(); }

  private:
    RecordLog(std::string path, UniqueFd file, std::uint64_t bytes, std::uint64_t next)
        : path_(std::move(path)), file_(std::move(file)), bytes_(bytes), next_(next) {}

    std::string path_;
    UniqueFd file_;
    std::uint64_t bytes_ = 0;
    std::uint64_t next_ = 0; // number of the next record
    bool read_only_ = false;
};

} // namespace sieve::service
