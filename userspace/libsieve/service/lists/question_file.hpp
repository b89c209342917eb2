// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a joint filter must not match, on its way from the parent to the child that builds the filter: there
// may be too much of it for a message.
//
// All numbers are little-endian: for each set how many exceptions it has, and how many keys are spared, 8
// bytes each; then the exceptions of all sets in their order, and the spared keys, as in memory.
#pragma once

#include "libsieve/control/joint/joint_task.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Writes the task's exceptions and spared keys to an empty file.
[[nodiscard]] Status write_question_file(const control::JointTask& task, int to);

// Reads them back into the task, from the file's beginning; the task has its sets already. bad_input unless
// the file is one for so many sets.
[[nodiscard]] Status read_question_file(int from, control::JointTask& task);

} // namespace sieve::service
