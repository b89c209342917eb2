// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where to look for changes of a source that is a file, a folder or a pattern.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/config/values/configuration.hpp"

namespace sieve::service {

// What happens in a folder concerns a source if it happens to a name like this.
struct WatchPoint {
    enum class Names : std::uint8_t {
        none,    // to the folder itself: it is moved or removed
        one,     // to `name`
        lists,   // to a file whose name may be a list's (is_list_name())
        pattern, // to a name that fits `name`, as glob(7) has it
    };
    std::string folder;
    Names names = Names::none;
    std::string name{};
    bool on_the_way = false; // it leads to the lists: after a change, the points have to be found anew

    [[nodiscard]] bool concerns(std::string_view what) const;
    [[nodiscard]] friend bool operator==(const WatchPoint&, const WatchPoint&) = default;
};

// The points of a source as the file system is now: the folders that hold its lists, the folders above them,
// and the folders of symbolic links on the way. Where a folder is missing, the points end at the folder in
// which it would appear. Each point is there once. A source that has no files has none.
[[nodiscard]] std::vector<WatchPoint> watch_points(const SourceSpec& source);

} // namespace sieve::service
