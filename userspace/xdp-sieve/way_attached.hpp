// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How our program came to an interface and whom it shares it with, in words and as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "libsieve/kernel/hooks/hook.hpp"

namespace sieve::cli {

// At XDP "alone", "alone, by ip link or another tool", or "behind libxdp's dispatcher, priority 50, chain
// pass"; at tc "filter at priority 50".
[[nodiscard]] std::string way_attached(const kernel::Hook& hook);

// "native mode" or "skb mode" at XDP, "tc" at tc's hooks.
[[nodiscard]] std::string mode_text(const kernel::Hook& hook);

// The programs that share the hook with ours, in the order in which they are asked, ours among them, one a
// line and indented; empty if it is alone.
[[nodiscard]] std::string neighbours(const kernel::Hook& hook);

// Adds "attached_by"; at XDP "mode", "dispatcher" (whether ours is behind one), and behind a dispatcher
// "priority", "chain" and "programs"; at tc "priority" and "handle".
void add_way_attached(nlohmann::json& out, const kernel::Hook& hook);

} // namespace sieve::cli
