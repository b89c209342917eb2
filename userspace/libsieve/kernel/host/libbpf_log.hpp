// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Collects the messages of libbpf and libxdp, which would otherwise go to standard error.
#pragma once

#include <string>

namespace sieve::kernel {

// Sends all messages of libbpf and libxdp, debug messages included, to standard error; for `--verbose`.
void set_verbose(bool verbose);

// While it lives, collects the two libraries' messages of its thread instead of printing them. At most one
// object in each thread.
class LogCapture {
  public:
    LogCapture();
    LogCapture(const LogCapture&) = delete;
    LogCapture& operator=(const LogCapture&) = delete;
    ~LogCapture();

    [[nodiscard]] const std::string& text() const { return text_; }

    // The end of the verifier's log, at most `lines` lines; empty if there was none.
    [[nodiscard]] std::string verifier_log(std::size_t lines) const;

    // The kernel's own words for a refused attach ("Kernel error message: ..."), or an empty string.
    [[nodiscard]] std::string kernel_message() const;

  private:
    std::string text_;
};

} // namespace sieve::kernel
