// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How our program came to an interface and whom it shares it with, in words and as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "libsieve/kernel/hooks/hook.hpp"

namespace sieve::cli {

// "native mode, " at XDP, nothing at tc; and the mode as JSON, null at tc.
[[nodiscard]] std::string mode_text(const kernel::Hook& hook);
[[nodiscard]] nlohmann::json mode_json(const kernel::Hook& hook);

// At tc "priority 50", with ", by tc or another tool" if `load` did not attach it. At XDP "alone", "alone, by
// ip link or another tool", or "behind libxdp's dispatcher, priority 50, chain pass".
[[nodiscard]] std::string way_attached(const kernel::Hook& hook);

// The programs that share the hook with ours, in the order in which they are asked, ours among them, one a
// line and indented; empty if it is alone.
[[nodiscard]] std::string neighbours(const kernel::Hook& hook);

// Adds "dispatcher" (whether ours is behind one), "attached_by", and behind a dispatcher "priority", "chain"
// and "programs". At tc "dispatcher" is false, and there are "priority" and "programs".
void add_way_attached(nlohmann::json& out, const kernel::Hook& hook);

} // namespace sieve::cli
