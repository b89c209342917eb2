// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The parent's side of an unprivileged child: starts it, listens to it, ends it, and says how it ended.
//
// The child is this very program, executed anew (child_main.hpp), so that nothing of the parent's memory,
// threads and descriptors is left in it. It gets its order as JSON in a pipe or a sealed file, and reports in
// lines of JSON through a pipe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/download/sandbox_limits.hpp"
#include "libsieve/service/sandbox/child_role.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// What the child finds open, besides the null device as standard input. Its standard error is read by the
// parent.
namespace child_descriptor {
inline constexpr int order = 3;
inline constexpr int report = 4;
inline constexpr int first = 5; // ChildOrder::descriptors, in their order
} // namespace child_descriptor

// argv[1] of a child.
inline constexpr const char* child_argument = "--sieve-child";
// In a child's environment until run_as_child() takes it away.
inline constexpr const char* child_variable = "XDP_SIEVE_CHILD";

// A report may have so many bytes, and so many more for each descriptor, such as the name of each list that
// the child reads; no line has more than the former. A child that says more is ended.
inline constexpr std::size_t longest_report = std::size_t{64} << 10;
inline constexpr std::size_t longest_report_of_one = std::size_t{8} << 10;

using ChildStarted = std::function<void(ChildRole role, pid_t pid)>;

struct ChildOrder {
    ChildRole role = ChildRole::build;
    std::string message;                     // JSON
    std::vector<int> descriptors;            // borrowed
    std::chrono::milliseconds time_limit{0}; // 0: none
    // Takes what comes of the child's standard output, and returns 0, or an errno value to end the child;
    // null: the null device takes it.
    std::function<int(std::string_view bytes)> output;
    std::uint64_t output_limit = 0; // bytes
    ChildStarted started;
    Progress progress; // is told how much of its work the child says is done; empty: nobody
    int cancel = -1;   // a descriptor that becomes readable when nobody needs the child any more; -1: none
};

struct ChildEnd {
    enum class Way : std::uint8_t {
        exited,     // `number`: its exit status
        signalled,  // `number`: the signal that it did not get from here
        time_limit, // ended from here, as the next four are
        output_limit,
        report_limit,
        output_error, // `number`: the errno value that `output` returned
        cancelled,
    };
    Way way = Way::exited;
    int number = 0;
    std::uint64_t printed = 0; // bytes that `output` took
    std::string report;        // its last line that is no progress; empty: none
    std::string at;            // what it was at when it ended; empty: unknown
    std::string last_words;    // the last line of its standard error, printable
};

// Runs a child to its end. All its processes are gone when this returns, and all it printed is in `output`.
// Error: no child could be started.
[[nodiscard]] Result<ChildEnd> run_child(const ChildOrder& order);

// How a child ended that has not reported, as a predicate: "took longer than 60 s and was ended".
[[nodiscard]] std::string describe(const ChildEnd& end, const ChildOrder& order, const SandboxLimits& limits);

} // namespace sieve::service
