// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// --watch [SECONDS] and --times, for commands that can show something repeatedly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "front-end/console/arguments.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::cli {

class Watch {
  public:
    // Adds the arguments. This object must outlive the parsing.
    void add_to(Arguments& command, const std::string& description);

    // Reads what was given. A word behind --watch that is no number is the interface, unless there is one
    // already (`stats --watch eth0`). If there is something to watch, Ctrl-C ends the sleep of next() from
    // now on.
    Status begin(std::string& interface);

    [[nodiscard]] bool on() const { return argument_ && argument_->given(); }

    // Sleeps until the next round. False if this was the last round, or if Ctrl-C ended the sleep.
    bool next();

  private:
    std::optional<Argument> argument_;
    std::vector<std::string> words_; // behind --watch
    double seconds_ = 1;
    std::uint64_t times_ = 0; // 0: until interrupted
    std::uint64_t shown_ = 0;
};

} // namespace sieve::cli
