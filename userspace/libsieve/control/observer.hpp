// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a caller may want to hear while control is at work. Nothing here prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "libsieve/util/progress.hpp"

namespace sieve::control {

struct Observer {
    Progress progress = [](std::string_view, double) {};
    // One sentence that a person should know, such as why a line of a feed was skipped.
    std::function<void(const std::string& text)> remark = [](const std::string&) {};
    // Another controller is at work and is being waited for.
    std::function<void(const std::string& holder)> waiting = [](const std::string&) {};
};

} // namespace sieve::control
