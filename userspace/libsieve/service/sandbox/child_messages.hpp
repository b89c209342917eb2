// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What parent and child tell each other, as JSON. Orders come from the parent and are believed. Reports come
// from a process that may have been taken over: nothing in them is believed before it was looked at.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

#include "libsieve/control/joint/joint_task.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/service/download/download.hpp"
#include "libsieve/service/lists/decisions.hpp"
#include "libsieve/service/sandbox/confine.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// How the body is to be read as an answer of CrowdSec.
struct DecisionOrder {
    live::DecisionFilter filter;
    std::int64_t now = 0; // in milliseconds since 1970
};

// Descriptors: the empty file that takes the body and, with `decisions`, the one that takes what the body
// says (lists/decision_file.hpp).
struct FetchOrder {
    HttpRequest request;    // the child reads the files that it names before it gives up its rights
    std::string key_file{}; // holds the key that CrowdSec's API asks for; empty: none
    std::optional<DecisionOrder> decisions{};
};

// No descriptor: standard output goes to the parent.
struct CommandOrder {
    std::vector<std::string> arguments{}; // the program, and what it is told
};

// What becomes of lists of the command line: descriptors are the lists. What they hold goes to standard
// output (list_stream.hpp).
struct ListOrder {
    std::uint32_t fields = 0;
    FeedOptions options;                                // without what only the parent can call
    std::vector<std::array<std::uint64_t, 5>> sought{}; // keys
    std::vector<std::vector<std::uint8_t>> inputs{};    // their paths, of any bytes
};

// What becomes of lists: descriptors are the empty files that take the parsed list (list_file.hpp) and its
// exceptions likewise, and then each list's content. If the feed has exceptions, the last list holds them.
struct ReadOrder {
    control::FeedSpec feed;
    std::vector<std::string> lists; // names, for messages
    std::string known_digest;       // a list of this digest (list_digest.hpp) is not written; empty: none
    UnpackLimits limits;
};

// Descriptors: the parsed list, its exceptions (an empty file if the feed has none), and the empty file that
// takes the image.
struct BuildOrder {
    control::FeedSpec feed; // its label names the lists
    bool verified = false;  // verification keeps the exceptions from matching
};

// What becomes of several sets' lists: descriptors are what the joint filter must not match
// (question_file.hpp), the empty file that takes the joint filter, and the parsed list of each set.
struct JoinOrder {
    control::JointTask task; // without what its question file holds
};

// A task that the program has beside these (child_main.hpp). Descriptors: as the task says.
struct TaskOrder {
    std::string task;    // its name
    std::string message; // what it is told
};

using AnyOrder =
    std::variant<FetchOrder, CommandOrder, ListOrder, ReadOrder, BuildOrder, JoinOrder, TaskOrder>;

// The child gives up its rights before it follows the order.
struct ConfinedOrder {
    Confinement confinement;
    AnyOrder order;
};

[[nodiscard]] std::string write_order(const ConfinedOrder& order);
// Throws nothing: an order that is none is bad_input.
[[nodiscard]] Result<ConfinedOrder> read_order(std::string_view text);

// The numbers of a Feed.
struct ListDone {
    std::uint64_t lines = 0;
    std::uint64_t comments = 0;
    std::uint64_t skipped = 0;
    std::uint64_t masked = 0;
    std::uint64_t bytes = 0;
};

struct ReadDone {
    bool known = false;                 // the list has the known digest: nothing was written
    std::string digest{};               // of the list
    std::vector<std::string> remarks{}; // such as why lines were skipped
};

// Of building, joining and tasks: what they had to write is written.
struct WorkDone {
    std::vector<std::string> remarks{};
};

// Why there is no list, or no answer of a server. A child reports no other kinds of errors than bad_input,
// invalid_request, needs_feed, not_permitted and out_of_memory.
struct GatherFailure {
    GatherFailure(Error why,
                  std::optional<std::chrono::seconds> retry = {}) // NOLINT(google-explicit-constructor)
        : error(std::move(why)), retry_after(retry) {}

    Error error; // "ORIGIN: what happened"; a child reports no facts but the list that is to blame
    std::optional<std::chrono::seconds> retry_after; // a server wants to be asked again then (backoff.hpp)
};

// One line each. Done is HttpAnswer, ListDone, ReadDone or WorkDone.
[[nodiscard]] std::string write_progress(const std::string& at);
[[nodiscard]] std::string write_share(std::string_view stage, double share);
template <class Done>
[[nodiscard]] std::string write_report(const Done& done);
[[nodiscard]] std::string write_failure(const GatherFailure& failure);

// What is no report of that sort is the failure "reported nonsense". Texts come back printable.
template <class Done>
[[nodiscard]] tl::expected<Done, GatherFailure> read_report(const std::string& line);

} // namespace sieve::service
