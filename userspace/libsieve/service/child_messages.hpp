// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What parent and child tell each other, as JSON. Orders come from the parent and are believed. Reports come
// from a process that may have been taken over: nothing in them is believed before it was looked at.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

#include "libsieve/control/set_spec.hpp"
#include "libsieve/service/confine.hpp"
#include "libsieve/service/http_source.hpp"
#include "libsieve/service/live/decisions.hpp"
#include "libsieve/service/unpack.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service {

// How the body is to be read as an answer of CrowdSec.
struct DecisionOrder {
    live::DecisionFilter filter;
    std::int64_t now = 0; // in milliseconds since 1970
};

// Descriptors: the empty file that takes the body and, with `decisions`, the one that takes what the body
// says (live/claim_file.hpp).
struct FetchOrder {
    Confinement confinement;
    HttpRequest request;
    std::string certificates_path; // read before the child gives up its rights; empty: the system's
    std::optional<DecisionOrder> decisions{};
};

// No descriptor: standard output goes to the parent.
struct CommandOrder {
    Confinement confinement;
    std::vector<std::string> arguments; // the program, and what it is told
};

// Descriptors: the files that take the image, the exact keys and the parsed list, and then for each list its
// content and, if that is packed, an empty file that takes what it unpacks to (else the content once more).
struct BuildOrder {
    Confinement confinement;
    control::FeedSpec feed;
    std::vector<std::string> lists; // names, for messages
    bool exact = false;             // write the keys for verification, too
    bool list = false;              // and the parsed list (list_file.hpp)
    std::string known_digest;       // a list of this digest (list_digest.hpp) is not built again; empty: none
    UnpackLimits limits;
};

using AnyOrder = std::variant<FetchOrder, CommandOrder, BuildOrder>;

[[nodiscard]] std::string write_order(const AnyOrder& order);
// Throws nothing: an order that is none is bad_input.
[[nodiscard]] Result<AnyOrder> read_order(std::string_view text);

struct BuildDone {
    bool known = false;               // the list has the known digest: no image was written
    std::string digest;               // of the list; empty: the source was an image
    std::vector<std::string> remarks; // such as why lines were skipped
};

struct ChildFailure {
    Error error; // bad_input, invalid_request or out_of_memory
    std::optional<std::chrono::seconds> retry_after;
};

// One line each.
[[nodiscard]] std::string write_progress(const std::string& at);
[[nodiscard]] std::string write_report(const HttpAnswer& answer);
[[nodiscard]] std::string write_report(const BuildDone& done);
[[nodiscard]] std::string write_report(const ChildFailure& failure);

// Of a fetch, and of a build. What is no report of that sort is the failure "reported nonsense". Texts come
// back printable.
[[nodiscard]] tl::expected<HttpAnswer, ChildFailure> read_http_report(const std::string& line);
[[nodiscard]] tl::expected<BuildDone, ChildFailure> read_build_report(const std::string& line);

} // namespace sieve::service
