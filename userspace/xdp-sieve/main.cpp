// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve: builds filters from feeds and steers the program that asks them.
#include <algorithm>
#include <span>
#include <string_view>

#include "front-end/with_fleet.hpp"
#include "libsieve/service/sandbox/child.hpp"
#include "xdp-sieve/program.hpp"

namespace {

// Whoever asks which commands there are is to see those of a fleet, too.
bool may_be_of_fleet(std::span<char* const> words) {
    using namespace sieve;
    if (!words.empty() && std::string_view(words.front()) == service::child_argument) return false;
    const auto command =
        std::ranges::find_if(words, [](std::string_view word) { return !word.starts_with('-'); });
    return command == words.end() || !cli::is_common_command(*command);
}

} // namespace

int main(int argc, char** argv) {
    using namespace sieve;
    if (may_be_of_fleet({argv + std::min(argc, 1), argv + argc})) cli::become_program_with_fleet(argv);
    return cli::run_program(argc, argv, {});
}
