// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a command reads: a file, a pipe, a FIFO or standard input, opened once and read once.
//
// A pipe has no second beginning. So whoever wants to know what an input is (an image, a feed, compressed
// data) looks at its first bytes with peek(), and the reader that follows gets these bytes, too. No code
// opens a path a second time.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve {

struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    auto operator<=>(const FileIdentity&) const = default;
};

// Move-only. Naming an input finds out whether it can be read; the first peek() or read() opens it. A command
// can so name ten thousand files before it reads the first, without ten thousand descriptors, and a FIFO is
// waited for when its turn comes.
class Input {
  public:
    // The input of that path; "-" is standard input. bad_input if there is none, if it is a directory, or if
    // it may not be read.
    [[nodiscard]] static Result<Input> of(const std::string& path);

    // The input of a descriptor that is open already, from where it stands. `name` is what messages call it.
    [[nodiscard]] static Result<Input> of(UniqueFd fd, std::string name);

    // All of them, in order; the error of the first that cannot be read.
    [[nodiscard]] static Result<std::vector<Input>> of_all(const std::vector<std::string>& paths);

    // The path as it was given.
    [[nodiscard]] const std::string& path() const { return path_; }

    // For messages: "standard input", or the path without bytes that a terminal obeys.
    [[nodiscard]] std::string name() const;

    // Bytes of a regular file that were there to read when it was named or opened; nothing for all others.
    [[nodiscard]] std::optional<std::uint64_t> size() const { return size_; }

    // True if its bytes are gone once they were read: anything but a regular file.
    [[nodiscard]] bool is_stream() const { return !size_; }

    // What the file system calls it: equal for two names of one file, pipe or terminal.
    [[nodiscard]] FileIdentity identity() const { return identity_; }

    // The next bytes, without taking them: so many, or fewer where the input ends before. The view is valid
    // until the next call.
    [[nodiscard]] Result<std::string_view> peek(std::size_t bytes);

    // Takes the next bytes, at most so many; 0 only at the end. A regular file that became shorter than it
    // was when it was opened is an error: what is missing was lost.
    [[nodiscard]] Result<std::size_t> read(char* to, std::size_t bytes);

    // Takes exactly so many bytes, or fewer where the input ends before.
    [[nodiscard]] Result<std::size_t> read_all(char* to, std::size_t bytes);

    // Bytes that were taken so far.
    [[nodiscard]] std::uint64_t taken() const { return taken_; }

    // Gives the descriptor back; nothing can be read any more.
    void close();

  private:
    explicit Input(std::string path) : path_(std::move(path)) {}
    [[nodiscard]] Status open();
    // Notes what an open file says about its end.
    void measure(const struct stat& info);
    [[nodiscard]] Result<std::size_t> read_file(char* to, std::size_t bytes);
    [[nodiscard]] tl::unexpected<Error> unreadable(int error) const;

    std::string path_;
    FileIdentity identity_;
    std::optional<std::uint64_t> size_;
    off_t end_ = 0; // of a regular file, when it was opened
    UniqueFd owned_;
    int fd_ = -1; // owned_ or standard input; -1 before the first access
    bool closed_ = false;
    std::string ahead_; // bytes that were looked at and not taken
    std::uint64_t taken_ = 0;
};

// What a command's inputs may have in common.
enum class Repeated {
    nothing, // each is named once
    files,   // a regular file may be named again, and is read again
};

// A usage error if two of the inputs are one, by whatever names. A stream is always an error: its bytes can
// be read once only.
[[nodiscard]] Status check_repeated(const std::vector<const Input*>& inputs, Repeated allowed);

} // namespace sieve
