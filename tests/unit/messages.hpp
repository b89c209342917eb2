// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The wording of what tests are told. A test says which error it meets, of which kind; tests/unit/messages
// has the words, in one file for each folder of tests/unit. MESSAGES=record build/unit-tests
// --gtest_filter=... writes the entries of the tests that run.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// Notes this message. When the test ends, what it noted must be what its entry has, in that order; a test
// that failed or was skipped is not compared. Only the test's own process notes.
void expect_says(const std::string& message,
                 const std::source_location& place = std::source_location::current());

// Notes the message of an error, a warning or a guard's refusal.
template <class T>
concept Told = requires(const T& told) {
    told.message.size();
};
template <Told T>
void expect_says(const T& told, const std::source_location& place = std::source_location::current()) {
    expect_says(told.message, place);
}

// Expects an error of this kind, and notes its message.
void expect_error(const Error* error, ErrorKind kind, const std::source_location& place);
inline void expect_error(const Error& error, ErrorKind kind,
                         const std::source_location& place = std::source_location::current()) {
    expect_error(&error, kind, place);
}
template <class T>
void expect_error(const Result<T>& result, ErrorKind kind,
                  const std::source_location& place = std::source_location::current()) {
    expect_error(result ? nullptr : &result.error(), kind, place);
}

namespace test {

// Begins to compare the messages of tests, or to record them.
void watch_messages();

// What tests/unit/messages has for tests that do not exist, or that are of another file.
[[nodiscard]] std::vector<std::string> stale_messages();

// The lines of an entry for these messages: without what differs between runs and machines, and each message
// counted that follows itself.
[[nodiscard]] std::vector<std::string> entry_of(const std::vector<std::string>& messages);

// The lines that an entry has (-) and a test says (+), from the first difference to the last; empty if there
// is none.
[[nodiscard]] std::string difference(const std::vector<std::string>& entry,
                                     const std::vector<std::string>& said);

} // namespace test
} // namespace sieve
