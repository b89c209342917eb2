// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// libxdp's dispatcher: a program that calls up to ten others in the order of their priorities, each one if
// the verdict of the one before allows that. What it runs is read from the kernel alone, so it is found
// whoever attached it and wherever it is pinned. (libxdp could tell, too, but version 1.3 leaves descriptors
// open whenever it looks, and wants to see its pins.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/kernel/hooks/program.hpp"

namespace sieve::kernel {

inline constexpr std::string_view dispatcher_name = "xdp_dispatcher";

// Where a program stands among those that share a hook.
struct DispatcherRank {
    std::uint32_t priority = 50;   // the lower number is asked first
    std::uint32_t chain = 1U << 2; // bit v: the next one is asked after this one's verdict v (XDP_PASS is 2)
};

// A program behind a dispatcher.
struct DispatchedProgram {
    Program program;
    std::optional<DispatcherRank> rank; // absent if this dispatcher does not tell in a way that we know
};

// The programs behind that dispatcher, in the order in which they are asked. Empty if the program is no
// dispatcher. A program that goes away while we look is left out. Errors: what the kernel refused otherwise,
// since nobody may take our program for missing because files or memory ran out.
[[nodiscard]] Result<std::vector<DispatchedProgram>> dispatcher_members(const Program& dispatcher);

// The folder in which libxdp keeps its pins.
[[nodiscard]] std::string pin_root();

// Removes the pins of a dispatcher that is no longer attached, and so unloads the programs behind it. We do
// not use libxdp_clean_references(): it removes all pins of that interface number, and in another network
// namespace that number may belong to an interface in use.
void unpin_dispatcher(std::uint32_t interface, std::uint32_t id);

// "pass,drop" as bits of DispatcherRank::chain, and back; "none" for no bit at all. Nothing if a word is not
// the name of an XDP verdict: aborted, drop, pass, tx, redirect.
[[nodiscard]] std::optional<std::uint32_t> parse_chain(std::string_view text);
[[nodiscard]] std::string chain_text(std::uint32_t chain);

} // namespace sieve::kernel
