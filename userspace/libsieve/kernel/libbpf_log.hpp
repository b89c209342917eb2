// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// libbpf and libxdp explain themselves on standard error; here they explain themselves to us.
#pragma once

#include <string>

namespace sieve::kernel {

// Sends everything that libbpf and libxdp say, also in detail, to standard error; for `--verbose`.
void set_verbose(bool verbose);

// Collects what the two libraries say to its thread while it lives, instead of letting them print. One at a
// time in a thread.
class LogCapture {
  public:
    LogCapture();
    LogCapture(const LogCapture&) = delete;
    LogCapture& operator=(const LogCapture&) = delete;
    ~LogCapture();

    [[nodiscard]] const std::string& text() const { return text_; }

    // The end of the verifier's log, at most `lines` lines; empty if the verifier was not heard.
    [[nodiscard]] std::string verifier_log(std::size_t lines) const;

    // The kernel's own words for a refused attach ("Kernel error message: ..."), or an empty string.
    [[nodiscard]] std::string kernel_message() const;

  private:
    std::string text_;
};

} // namespace sieve::kernel
