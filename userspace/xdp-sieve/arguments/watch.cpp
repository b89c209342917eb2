// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/watch.hpp"

#include <charconv>

#include <fmt/core.h>

#include "xdp-sieve/arguments/interrupt.hpp"

namespace sieve::cli {

void Watch::add_to(Arguments& command, const std::string& description) {
    argument_ = command.add("--watch", words_, description).optional_value("[SECONDS]");
    command.add("--times", times_, "with --watch: stop after this many rounds")
        .positive()
        .only_with(*argument_);
}

Status Watch::begin(std::string& interface) {
    constexpr double longest = 86400;
    for (const std::string& word : words_) {
        if (word.empty()) continue;
        double seconds = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), seconds);
        if (error == std::errc() && end == word.data() + word.size() && seconds > 0 && seconds <= longest)
            seconds_ = seconds;
        else if (interface.empty())
            interface = word;
        else
            return invalid_request(
                fmt::format("--watch {}: expected a number of seconds, up to {}", word, longest));
    }
    if (on()) watch_for_interrupt();
    return {};
}

bool Watch::next() {
    if (!on() || ++shown_ == times_) return false;
    sleep_for(seconds_);
    return interrupted == 0;
}

} // namespace sieve::cli
