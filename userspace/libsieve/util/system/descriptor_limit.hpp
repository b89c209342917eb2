// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once

namespace sieve {

// Lets this process have as many descriptors as it may: a shell's soft limit, 1024, is for programs that call
// select(2), and a folder of lists takes two for each of them. A refusal changes nothing.
void raise_descriptor_limit();

} // namespace sieve
