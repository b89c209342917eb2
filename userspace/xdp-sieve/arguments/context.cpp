// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/context.hpp"

#include "front-end/console/output.hpp"
#include "front-end/console/progress_bar.hpp"

namespace sieve::cli {

void remark(const Context& context, const std::string& text) {
    if (!context.quiet) print_error("xdp-sieve: {}\n", text);
}

Progress progress_bar(const Context& context) {
    return progress_bar(context.quiet);
}

std::function<Progress()> progress_bars(const Context& context) {
    return [&context] { return progress_bar(context); };
}

control::Observer observer(const Context& context) {
    return {.progress = progress_bar(context),
            .remark = [&context](const std::string& text) { remark(context, text); },
            .waiting = [&context](const std::string& holder) { remark(context, "waiting for " + holder); }};
}

} // namespace sieve::cli
