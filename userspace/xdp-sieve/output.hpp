// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is printed. Printing never fails on the way: a change that was made is not undone because nobody could
// be told. Whether standard output took everything is asked once, at the end.
#pragma once

#include <cstdio>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace sieve::cli {

// To be called before anything else. A closed standard stream gets a descriptor that refuses to be used, so
// that no file or map that is opened later gets its number and our text; and a reader that goes away makes
// writing fail instead of killing the process in the middle of a change.
void prepare_streams();

void write_text(std::FILE* stream, std::string_view text);

template <class... T>
void print_out(fmt::format_string<T...> format, T&&... values) {
    write_text(stdout, fmt::format(format, std::forward<T>(values)...));
}

template <class... T>
void print_error(fmt::format_string<T...> format, T&&... values) {
    write_text(stderr, fmt::format(format, std::forward<T>(values)...));
}

// Writes what is buffered. False if standard output did not take everything, now or earlier.
[[nodiscard]] bool flush_output();

// Why it did not: an errno value.
[[nodiscard]] int output_error();

} // namespace sieve::cli
