// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What happened to a list since its image was built, on disk, before it happens in the kernel.
//
// A file of records (lists/record_log.hpp). Two types:
//
//     change   claims that came and went. Written before the first filter is touched
//     done     every filter in force has all changes so far: the maps, and each header's number of changes
//
// A record that a crash cut short is dropped. A change without a `done` after it leaves it unknown which keys
// are in the filters. The journal is not flushed to the disk for each change: the page cache survives this
// process, and when the machine dies, the filters die with it, and the source is asked for the whole list.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/service/lists/claim.hpp"
#include "libsieve/service/lists/record_log.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service::live {

// A filter in force, as a change left it.
struct NotedFilter {
    std::uint32_t map_id = 0;
    std::uint64_t changes = 0; // of its header

    [[nodiscard]] friend bool operator==(const NotedFilter&, const NotedFilter&) = default;
};

class Journal {
  public:
    // What is in a journal, from its beginning.
    struct Content {
        std::vector<ClaimChange> changes;
        std::vector<NotedFilter> filters; // of the last `done`
        bool finished = true;             // no change follows it
        bool torn = false;                // a record at the end was cut short, and is gone
    };

    // A new one, in place of whatever is there. It has its name once all of this is on the disk.
    [[nodiscard]] static Result<Journal> create(const std::string& path,
                                                const std::vector<ClaimChange>& changes = {});
    // Reads an existing one into `content`, cuts off a torn end, and opens it for more. bad_input if it is no
    // journal, cannot be read or is damaged; the file stays as it is then.
    [[nodiscard]] static Result<Journal> open(const std::string& path, Content& content);

    // An error leaves the journal as it was.
    [[nodiscard]] Status append(const ClaimChange& change);
    [[nodiscard]] Status append_done(const std::vector<NotedFilter>& filters);

    [[nodiscard]] std::uint64_t bytes() const { return log_.bytes(); }
    [[nodiscard]] const std::string& path() const { return log_.path(); }

  private:
    explicit Journal(RecordLog log) : log_(std::move(log)) {}

    RecordLog log_;
};

} // namespace sieve::service::live
