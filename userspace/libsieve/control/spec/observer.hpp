// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Callbacks for progress and remarks while control works. Nothing in control prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "libsieve/util/parallel/progress.hpp"

namespace sieve::control {

struct Observer {
    Progress progress = [](std::string_view, double) {};
    // A sentence for the operator, such as why a line of a feed was skipped.
    std::function<void(const std::string& text)> remark = [](const std::string&) {};
    // Takes every malformed line that was skipped, as "FILE:LINE: why". Without it, the first few are
    // remarks.
    std::function<void(const std::string& line)> malformed{};
    // Called while this controller waits for another one, which `holder` names.
    std::function<void(const std::string& holder)> waiting = [](const std::string&) {};
};

} // namespace sieve::control
