// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The bans of a set on the disk: a file of changes (lists/record_log.hpp), STATE/bans/SET. Whoever changes it
// holds the lock of that folder, of all sets, and whoever wants it waits for a while only: its holder may
// have been stopped. Whoever reads needs no lock. The daemon and a command may both write.
//
//     append()   a whole change, on the disk when it returns, or an error and the ledger as it was
//     read()     what came since the last read
//     tidy()     writes the file anew, with the bans only, when most of it is of the past
//
// A record that a crash cut short was never answered, and is dropped. Any other damage is an error of every
// call, and the file stays as it is.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/service/lists/ban.hpp"
#include "libsieve/service/lists/record_log.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

// Where the ledgers of a state directory are, and that of a set.
[[nodiscard]] std::string ban_folder(const std::string& state);
[[nodiscard]] std::string ban_ledger_path(const std::string& state, const std::string& set);

class BanLedger {
  public:
    // `patience`: how long another holder of the lock is waited for.
    BanLedger(const std::string& state, const std::string& set,
              std::chrono::milliseconds patience = std::chrono::seconds(10))
        : state_(state), folder_(ban_folder(state)), path_(ban_ledger_path(state, set)), patience_(patience) {
    }

    // A place in the ledger.
    struct Mark {
        ino_t file = 0;
        std::uint64_t bytes = 0;

        // Whether all up to `other` is behind this place. A file that took the place of that of `other` has
        // it all, but not the file of `before`, a place that was known before `other` was.
        [[nodiscard]] bool has(const Mark& other, const Mark& before) const {
            return file == other.file ? bytes >= other.bytes : file != before.file;
        }
    };

    // Errors: bad_input for a ledger that is damaged, and for a state directory that others may write to:
    // they could lift every ban; kernel_refused for a ledger that cannot be written; busy, as of all that
    // change a ledger, while another process holds the lock. Nothing was changed.
    [[nodiscard]] Status append(const std::vector<live::BanChange>& changes);

    // Calls `visit` for each change since the last read, or for all of them. Returns whether it was all: the
    // first time, and when the file is another one or shorter than it was. A ledger that is not there is
    // empty.
    [[nodiscard]] Result<bool> read(const std::function<void(live::BanChange&& change)>& visit);
    void read_all_next() { log_.reset(); }
    // The bans that are not over by then, or those of them that are wanted. The next read() goes on from
    // there.
    [[nodiscard]] Result<live::Bans> bans(live::Time now,
                                          const std::function<bool(const live::Prefix& prefix)>& wanted = {});
    [[nodiscard]] Status tidy(live::Time now);
    // Makes the ledger of another set that of this one. kernel_refused if this one has bans that are not over
    // by then, or if it cannot be done; bad_input if its ledger is damaged. Both stay as they were then.
    [[nodiscard]] Status take_over(const std::string& other, live::Time now);

    [[nodiscard]] Mark mark() const { return {inode_, log_ ? log_->bytes() : 0}; }

  private:
    [[nodiscard]] Result<UniqueFd> lock();
    [[nodiscard]] Result<bool> open_anew();
    [[nodiscard]] Result<bool> read_on(const std::function<void(live::BanChange&& change)>& visit);

    std::string state_;
    std::string folder_;
    std::string path_;
    std::chrono::milliseconds patience_;
    std::optional<RecordLog> log_;
    ino_t inode_ = 0;
};

} // namespace sieve::service
