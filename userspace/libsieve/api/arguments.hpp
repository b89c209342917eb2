// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Arguments that several functions of the C interface take.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>

#include "libsieve/api/libsieve.h"
#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::api {

// Errors are of kind invalid_request. `hook` and `interface` may be null, which names nothing. An interface
// without a name is an error: control takes it for all of them.
[[nodiscard]] Result<control::HookName> hook_name(const char* interface, const char* hook);
// The options of a change at full size. An option other than those taken, by their names, must be zero.
[[nodiscard]] Result<libsieve_change_options> change_options(const char* function,
                                                             const libsieve_change_options* given,
                                                             std::initializer_list<const char*> taken);
[[nodiscard]] Result<sieve_action> parse_pass_or_drop(const char* what, const char* action);
// 0 stands for no wish; a number is for replies that pass.
[[nodiscard]] Result<control::WantedFlows> parse_flows(sieve_action replies, std::uint64_t max_flows);
[[nodiscard]] Result<std::chrono::seconds> parse_probation(std::uint32_t seconds);

} // namespace sieve::api
