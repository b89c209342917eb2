// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// --watch [SECONDS] and --times, for commands that can show something again and again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/util/result.hpp"
#include "xdp-sieve/arguments.hpp"

namespace sieve::cli {

class Watch {
  public:
    // The arguments; this object must outlive the parsing.
    void add_to(Arguments& command, const std::string& description);

    // What was given. A word behind --watch that is no number is the interface, if there is none yet
    // (`stats --watch eth0`). From now on, if there is something to watch, Ctrl-C ends the sleep of next().
    Status begin(std::string& interface);

    [[nodiscard]] bool on() const { return argument_ && argument_->given(); }

    // Sleeps; false if it was the last time, or the operator has had enough.
    bool next();

  private:
    std::optional<Argument> argument_;
    std::vector<std::string> words_; // behind --watch
    double seconds_ = 1;
    std::uint64_t times_ = 0; // 0: until interrupted
    std::uint64_t shown_ = 0;
};

} // namespace sieve::cli
