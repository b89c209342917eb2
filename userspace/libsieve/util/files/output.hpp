// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Writes the file that a user named as a command's output. The output replaces no file of another kind, and
// the file appears complete or not at all.
//
// An output is a new name or a regular file. A symbolic link is followed: the file it points to is replaced,
// and the link stays. A dangling link is refused. An existing file must be empty or begin like an output of
// the same command, unless the caller says Replace::anything. With Replace::own, no link is followed.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/files/input.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve {

struct OutputKind {
    const char* name = "";                      // "filter image"
    std::vector<std::string_view> beginnings{}; // how such a file can begin
    mode_t mode = 0666;                         // of a new file, before the umask
};

enum class Replace {
    ours,     // empty files, and files that begin like this kind of output
    anything, // any regular file
    own, // whatever has the name in a folder that is this program's own: a link itself, and nobody's file
};

// Checks whether write_output() could write there, as far as this can be known beforehand. Refuses an output
// that is one of the inputs, whatever `replace` says. The error says what prevents the output: foreign_file
// if Replace::anything would allow it, else bad_input.
[[nodiscard]] Status check_output(const std::string& path, const OutputKind& kind, Replace replace,
                                  std::span<const Input> inputs = {});

enum class Staging {
    unnamed, // O_TMPFILE, if the file system supports it
    named,   // under a temporary name in the same directory
};

// Writes the file. The file gets its name only when all of it is on the disk. Until then it has no name, and
// any earlier file stays, whatever ends the process. If the file system has no O_TMPFILE, or if a file is
// replaced, the new file has a temporary name for a short time; signals that would end the process wait until
// that name is gone. Errors are those of check_output().
[[nodiscard]] Status write_output(const std::string& path, std::span<const char> content,
                                  const OutputKind& kind, Replace replace,
                                  Staging staging = Staging::unnamed);

// Opens a file that grows while it is written, such as a capture. An existing file is emptied.
[[nodiscard]] Result<UniqueFd> open_output(const std::string& path, const OutputKind& kind, Replace replace);

} // namespace sieve
