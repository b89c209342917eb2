// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How our program is attached to an interface and which programs share it, in words and as JSON.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "libsieve/kernel/hooks/hook.hpp"

namespace sieve::cli {

// "native mode, " at XDP, nothing at tc; and the mode as JSON, which is null at tc.
[[nodiscard]] std::string mode_text(const kernel::Hook& hook);
[[nodiscard]] nlohmann::json mode_json(const kernel::Hook& hook);

// At tc "priority 50", with ", by tc or another tool" if `load` did not attach the program. At XDP "alone",
// "alone, by ip link or another tool", or "behind libxdp's dispatcher, priority 50, chain pass".
[[nodiscard]] std::string way_attached(const kernel::Hook& hook);

// Filters of tc in their order, each with "kind", "priority", and "id" and "name" of its BPF program or null.
[[nodiscard]] nlohmann::json filters_json(std::span<const kernel::TcFilter> filters);

// The programs and filters that share the hook, ours included, in the order in which they are asked. One
// indented line for each; empty if ours is alone.
[[nodiscard]] std::string neighbours(const kernel::Hook& hook);

// Adds "dispatcher" (whether our program is behind one) and "attached_by". Behind a dispatcher, also adds
// "priority", "chain" and "programs". At tc, "dispatcher" is false, and "priority" and "programs" are added.
void add_way_attached(nlohmann::json& out, const kernel::Hook& hook);

} // namespace sieve::cli
