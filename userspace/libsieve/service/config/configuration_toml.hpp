// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// toml++ as the configuration's reader uses it. configuration_toml.cpp holds its code.
#pragma once

namespace sieve::service {

// toml++ 3.3 asserts what a text may well not keep to: that a key begins as keys do ("[[=x]]"). A mistake in
// a file must not end the process, and without the assertion the behaviour would be undefined.
struct ParserFault {};
[[noreturn]] void give_up_parsing();

} // namespace sieve::service

#undef NDEBUG
#define TOML_ASSERT(expression) ((expression) ? void() : ::sieve::service::give_up_parsing())
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 0
#include <toml++/toml.h>
