// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads lists as read_here() does (feeds/list_reader.hpp), by a child without privileges: no byte of a list
// is parsed in this process.
//
// A regular file goes to the child as a descriptor. What can be read only once, or was looked into already,
// comes through a pipe, into which this process copies it.
//
// A program that calls these functions calls run_as_child() (child_main.hpp) first in its main().
#pragma once

#include <span>

#include "libsieve/feeds/list_reader.hpp"
#include "libsieve/service/sandbox/sandbox_settings.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// The sandbox's limits are those of refreshes, and do not count here. Errors besides those of read_here():
// bad_input if the child crashed or said what no list says; not_permitted if the kernel does not let it give
// up its rights; out_of_memory if there can be no child.
[[nodiscard]] Result<FoundList> read_confined(std::span<Input> inputs, const ListQuestion& question,
                                              const SandboxSettings& sandbox = {});

} // namespace sieve::service
