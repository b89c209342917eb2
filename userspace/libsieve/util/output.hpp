// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a command writes to a file that somebody named: it replaces nothing that is not its own, and it comes
// to be as a whole or not at all.
//
// An output is a new name or a regular file. A symbolic link is followed: the file it leads to is replaced,
// and the link stays; a link that leads to nothing is refused. An existing file must begin like one that the
// same command wrote, or be empty, unless the caller says Replace::anything.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/input.hpp"
#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve {

struct OutputKind {
    const char* name = "";                      // "filter image"
    std::vector<std::string_view> beginnings{}; // how such a file can begin
    mode_t mode = 0666;                         // of a new file; the umask takes from it
};

enum class Replace {
    ours,     // what begins like an output of this kind, and empty files
    anything, // any regular file
};

// Whether write_output() could write there, as far as can be told beforehand; refuses, whatever may be
// replaced, an output that is one of the inputs. bad_input says what stands in the way.
[[nodiscard]] Status check_output(const std::string& path, const OutputKind& kind, Replace replace,
                                  std::span<const Input> inputs = {});

enum class Staging {
    unnamed, // O_TMPFILE, where the file system has it
    named,   // under another name in the same directory
};

// Writes the file. It gets its name when all of it is on the disk; until then, whatever ends the process, it
// has none, and what stood there before stays. Where the file system has no O_TMPFILE, or a file is replaced,
// it has another name for a while, and signals that would end the process wait until that name is gone. The
// errors are bad_input.
[[nodiscard]] Status write_output(const std::string& path, std::span<const char> content,
                                  const OutputKind& kind, Replace replace,
                                  Staging staging = Staging::unnamed);

// Opens a file that grows while it is written, such as a capture: emptied if it was there.
[[nodiscard]] Result<UniqueFd> open_output(const std::string& path, const OutputKind& kind, Replace replace);

} // namespace sieve
