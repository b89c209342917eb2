// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The lasting off switch: interfaces from which the service keeps its program away, whatever the
// configuration says. Each is a file in the state directory, so the switch holds over restarts and reboots:
//
//     paused          every interface
//     paused.eth0     this one
//
// A file is there or not, so there is nothing in it that could be damaged.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

struct Pauses {
    bool everywhere = false;
    std::set<std::string> interfaces{};

    [[nodiscard]] bool any() const { return everywhere || !interfaces.empty(); }
    [[nodiscard]] bool has(const std::string& interface) const {
        return everywhere || interfaces.contains(interface);
    }
    [[nodiscard]] friend bool operator==(const Pauses&, const Pauses&) = default;
};

// The pauses that are in this state directory. None in one that is not there, or that others may write to:
// anybody could switch the filter off. Error: it cannot be read now.
[[nodiscard]] Result<Pauses> read_pauses(const std::string& state);

// Without an interface: everywhere. The pause is on the disk when this returns. The state directory must be
// there, and this user's alone.
[[nodiscard]] Status add_pause(const std::string& state, const std::string& interface);

// Without an interface: all pauses go. Returns whether there was one.
[[nodiscard]] Result<bool> end_pause(const std::string& state, const std::string& interface);

// Whether a file of this name in the state directory is a pause.
[[nodiscard]] bool is_pause_file(std::string_view name);

} // namespace sieve::service
