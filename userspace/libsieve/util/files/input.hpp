// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An input of a command: a file, a pipe, a FIFO or standard input. It is opened once and read once.
//
// A pipe cannot be read a second time. Code that needs to know what an input is (an image, a feed, compressed
// data) looks at its first bytes with peek(), and the reader that follows gets these bytes, too. No code
// opens a path a second time.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/files/unpack.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve {

struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    auto operator<=>(const FileIdentity&) const = default;
};

// Move-only. Input::of() finds out whether the input can be read; the first peek() or read() opens it. So a
// command can name ten thousand files without holding ten thousand descriptors, and it waits for a FIFO only
// when the FIFO's turn comes.
class Input {
  public:
    // The input at this path; "-" is standard input. bad_input: nothing is at the path, it is a directory, or
    // it may not be read.
    [[nodiscard]] static Result<Input> of(const std::string& path);

    // An input from an open descriptor, starting at its current position. Messages call it `name`.
    [[nodiscard]] static Result<Input> of(UniqueFd fd, std::string name);

    // The inputs at all these paths, in order; or the error of the first that cannot be read.
    [[nodiscard]] static Result<std::vector<Input>> of_all(const std::vector<std::string>& paths);

    // The path as the user gave it.
    [[nodiscard]] const std::string& path() const { return path_; }

    // The name for messages: "standard input", or the path without the bytes that a terminal obeys.
    [[nodiscard]] std::string name() const;

    // How many bytes of a regular file were left to read when it was named or opened; empty for any other
    // input, and while it is unpacked.
    [[nodiscard]] std::optional<std::uint64_t> size() const { return size_; }

    // True if the bytes can be read only once: for anything but a regular file.
    [[nodiscard]] bool is_stream() const { return !size_; }

    // The file system's identity of the input: equal for two names of one file, pipe or terminal.
    [[nodiscard]] FileIdentity identity() const { return identity_; }

    // Returns the next `bytes` bytes without taking them, or fewer if the input ends before. The view is
    // valid until the next call.
    [[nodiscard]] Result<std::string_view> peek(std::size_t bytes);

    // Takes at most `bytes` of the next bytes. Returns 0 only at the end. If a regular file has become
    // shorter since it was opened, bytes were lost: an error.
    [[nodiscard]] Result<std::size_t> read(char* to, std::size_t bytes);

    // Takes exactly `bytes` bytes, or fewer if the input ends before.
    [[nodiscard]] Result<std::size_t> read_all(char* to, std::size_t bytes);

    // The number of bytes taken so far.
    [[nodiscard]] std::uint64_t taken() const { return taken_; }

    // If what follows is packed, as its first bytes tell, all later calls give what it unpacks to. Returns
    // whether it is packed. See Unpacker for the errors of reading.
    [[nodiscard]] Result<bool> unpack(const UnpackLimits& limits = {});

    // The number of bytes taken from the file or stream itself: taken(), or the packed bytes behind it.
    [[nodiscard]] std::uint64_t consumed() const { return unpacker_ ? unpacker_->consumed() : taken_; }

    // Closes the descriptor; nothing can be read any more.
    void close();

  private:
    explicit Input(std::string path) : path_(std::move(path)) {}
    [[nodiscard]] Status open();
    // Records the size and the end of an open regular file.
    void measure(const struct stat& info);
    [[nodiscard]] Result<std::size_t> read_file(char* to, std::size_t bytes);
    [[nodiscard]] tl::unexpected<Error> unreadable(int error) const;

    std::string path_;
    FileIdentity identity_;
    std::optional<std::uint64_t> size_;
    off_t end_ = 0; // of a regular file, at the time it was opened
    UniqueFd owned_;
    int fd_ = -1; // owned_ or standard input; -1 before the first access
    bool closed_ = false;
    std::unique_ptr<Unpacker> unpacker_; // reads the file in place of fd_
    std::string ahead_;                  // bytes that were peeked at but not taken
    std::uint64_t taken_ = 0;
};

// Which inputs a command may name more than once.
enum class Repeated {
    nothing, // none
    files,   // regular files, which are then read again
};

// Returns a usage error if two of the inputs are the same, under whatever names. Naming a stream twice is
// always an error, because its bytes can be read only once.
[[nodiscard]] Status check_repeated(const std::vector<const Input*>& inputs, Repeated allowed);

} // namespace sieve
