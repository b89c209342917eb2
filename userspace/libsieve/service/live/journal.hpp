// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What happened to a list since its image was built, on disk, before it happens in the kernel.
//
// A file of records (lists/record_log.hpp), each of timed entries that came and went, written before the
// first filter is touched. A record that a crash cut short is dropped. The journal is not flushed to the disk
// for each change: the page cache survives this process, and when the machine dies, the filters die with it,
// and the source is asked for the whole list.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/service/lists/record_log.hpp"
#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

class Journal {
  public:
    // What is in a journal, from its beginning.
    struct Content {
        std::vector<EntryChange> changes;
        bool torn = false; // a record at the end was cut short, and is gone
    };

    // A new one, in place of whatever is there. It has its name once all of this is on the disk.
    [[nodiscard]] static Result<Journal> create(const std::string& path,
                                                const std::vector<EntryChange>& changes = {});
    // Reads an existing one into `content`, cuts off a torn end, and opens it for more. bad_input if it is no
    // journal, cannot be read or is damaged; the file stays as it is then.
    [[nodiscard]] static Result<Journal> open(const std::string& path, Content& content);

    // Only reads one, also while another process writes it.
    [[nodiscard]] static Result<Content> read(const std::string& path);

    // Whether nothing has changed: there is no such file, or no record in it.
    [[nodiscard]] static bool is_empty(const std::string& path);

    // An error leaves the journal as it was.
    [[nodiscard]] Status append(const EntryChange& change);

    [[nodiscard]] std::uint64_t bytes() const { return log_.bytes(); }
    [[nodiscard]] const std::string& path() const { return log_.path(); }

  private:
    explicit Journal(RecordLog log) : log_(std::move(log)) {}

    RecordLog log_;
};

} // namespace sieve::service::live
