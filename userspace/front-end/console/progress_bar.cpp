// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/progress_bar.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "front-end/console/output.hpp"

namespace sieve::cli {

namespace {

// Draws "stage  [#####     ]  50%" on one line, which is erased at the end.
class Bar {
  public:
    ~Bar() {
        if (drawn_) write_text(stderr, "\r\033[K");
    }

    void update(std::string_view stage, double share) {
        using namespace std::chrono_literals;
        const auto now = std::chrono::steady_clock::now();
        if (now - start_ < 1s || now - last_ < 100ms) return;
        last_ = now;
        drawn_ = true;
        constexpr int width = 40;
        const int filled = static_cast<int>(share * width);
        write_text(stderr,
                   fmt::format("\r{:<14} [{:<{}}] {:3.0f}%", stage,
                               std::string(static_cast<std::size_t>(filled), '#'), width, share * 100));
        std::fflush(stderr);
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point last_{};
    bool drawn_ = false;
};

} // namespace

Progress progress_bar(bool quiet) {
    if (quiet || isatty(STDERR_FILENO) == 0) return [](std::string_view, double) {};
    return
        [bar = std::make_shared<Bar>()](std::string_view stage, double share) { bar->update(stage, share); };
}

} // namespace sieve::cli
