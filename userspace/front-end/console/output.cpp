// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "libsieve/util/text/printable.hpp"

namespace sieve::cli {

namespace {

int first_error = 0; // of standard output

void note_error(std::FILE* stream) {
    if (stream == stdout && first_error == 0) first_error = errno;
}

} // namespace

void prepare_streams() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            // open() returns the lowest free number, which is fd. Opened in the wrong direction, it answers
            // EBADF like a closed one.
            if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
        }
    // Writing fails instead, and the error says so.
    for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN); // NOLINT(cert-err33-c)
}

void write_text(std::FILE* stream, std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stream) < text.size()) note_error(stream);
}

std::string safe_message(std::string_view text) {
    const bool ends = text.ends_with('\n');
    if (ends) text.remove_suffix(1);
    std::string safe;
    for (;;) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        safe += printable(text.substr(0, end), std::string_view::npos);
        if (end == text.size()) break;
        safe += "\n  ";
        text.remove_prefix(end + 1);
    }
    if (ends) safe += '\n';
    return safe;
}

bool flush_output() {
    if (std::fflush(stdout) != 0) note_error(stdout);
    return first_error == 0 && std::ferror(stdout) == 0;
}

int output_error() {
    return first_error;
}

} // namespace sieve::cli
