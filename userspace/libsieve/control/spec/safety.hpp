// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What protects an operator from his own change.
#pragma once

#include <chrono>
#include <set>
#include <string>

namespace sieve::control {

class HostAddresses;

struct Safety {
    // Whom to ask about the addresses that this host lives by; null: the table is not asked about any. See
    // lockout.hpp.
    HostAddresses* host = nullptr;
    // Sets that may take packets of these addresses all the same.
    std::set<std::string> exempt{};
    // Not zero: the change is in force at once, and the program takes it back by itself after this time
    // unless end_probation() keeps it.
    std::chrono::seconds confirm_within{0};
};

} // namespace sieve::control
