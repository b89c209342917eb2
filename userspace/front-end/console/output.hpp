// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is printed. Printing itself reports no failure: a change that was made is not undone because nobody
// could be told. A single check at the end tells whether standard output took everything.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace sieve::cli {

// Call this before anything else. It gives a closed standard stream a descriptor that cannot be used.
// Otherwise a file or map that is opened later would get that number, and our text. It also makes writing
// fail when a reader has gone; otherwise a signal would kill the process in the middle of a change.
void prepare_streams();

void write_text(std::FILE* stream, std::string_view text);

template <class... T>
void print_out(fmt::format_string<T...> format, T&&... values) {
    write_text(stdout, fmt::format(format, std::forward<T>(values)...));
}

// A message about text from outside, made safe for a terminal. Lines behind the first are indented, so that
// no text from outside looks like a message of ours.
[[nodiscard]] std::string safe_message(std::string_view text);

// Prints a message that ends in a newline.
template <class... T>
void print_error(fmt::format_string<T...> format, T&&... values) {
    write_text(stderr, safe_message(fmt::format(format, std::forward<T>(values)...)));
}

// Writes the buffered text. False if standard output did not take everything, now or earlier.
[[nodiscard]] bool flush_output();

// The reason for that, as an errno value.
[[nodiscard]] int output_error();

} // namespace sieve::cli
