// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From origins to a checked image, without letting a hostile byte near the process that asks.
//
//     origin     who fetches it
//     file       nobody: its descriptor goes on
//     http(s)    a fetch child writes the body
//     command    a command child prints it
//
// Then a read child unpacks and parses all of it and writes records, and a build child makes an image of the
// records. Another build child makes the joint filter of several sets' records. An image needs no child: it
// is the format in which a child would hand it over.
//
// The caller checks the records and may look at them between the two steps. It checks every field of the
// image, and asks it for each of the records (build/check_built.hpp). It asks a joint filter for each record
// of all sets.
//
// Every child is this program executed anew (child.hpp) with the rights of confine.hpp. A list that is
// hostile can crash, hang or starve its child, and the refresh fails with one sentence that says so.
//
// A program that calls these functions calls run_as_child() (child_main.hpp) first in its main().
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sieve/key.h>
#include <tl/expected.hpp>

#include "libsieve/control/joint/joint_task.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/service/sources/origin.hpp"
#include "libsieve/service/state/source_provenance.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

// What the set in force was built of, as read_in_sandbox() returned it. It counts for the same feed options
// only.
struct KnownList {
    std::vector<SourceProvenance> sources{};
    std::string digest{}; // list_digest.hpp; empty if the origin was an image
};

// What an origin said last.
struct KeptContent {
    UniqueFd content;
    SourceProvenance provenance;
};

struct ReadRequest {
    std::string set{}; // its name, for messages
    std::vector<Origin> origins{};
    control::FeedSpec feed{};
    std::optional<KnownList> known{}; // nothing: read in any case
    SandboxSettings sandbox{};
    // Servers and commands whose content is kept are not asked: the files are news, and those have their
    // time.
    bool files_only = false;
    // The kept content of the origin with that identity; null: none is kept.
    std::function<std::optional<KeptContent>(const std::string& origin)> kept{};
    // Whether the list may do without the origin with that identity, where it fails and nothing is kept of
    // it; null: without none.
    std::function<bool(const std::string& origin)> may_lack{};
};

// How the visit to the origins went.
struct SourceVisit {
    // Of each origin what came of it, if that is worth keeping: a server or a command that has others beside
    // it may fail next time.
    std::vector<std::optional<UniqueFd>> contents{};
    // The first failure of an origin that was done without.
    std::optional<GatherFailure> behind{};
};

// Nothing is to be done: all origins say what they said, or the same list in other words.
struct UnchangedList {
    KnownList known; // with the times and validators of this refresh
    SourceVisit visit{};
};

struct ReadList {
    std::optional<Feed> list{};   // checked; nothing: the origin is an image
    UniqueFd records{};           // the list as list_file.hpp, which nobody can change any more
    UniqueFd exceptions{};        // what must not match, likewise; an empty file if there is nothing
    std::optional<Image> image{}; // if the origin is one: checked, and of the fields that were asked for
    KnownList known{};
    SourceVisit visit{};
    std::vector<std::string> remarks{}; // what a person should know, such as why lines were skipped
    std::string label{};                // names of the origins, for the image
    std::chrono::milliseconds gathering{0};
    std::chrono::milliseconds reading{0};
};

// Asks every origin, files and that of the feed's exceptions last, and reads the lists if any has something
// new. A file that changes while it is read is read again, a few times, and no server is asked for that. An
// image is refused unless the origin may be one (may_be_image()). What the exceptions name is taken out of
// the list. Whether it may be left without an entry, the guards say.
// Where a server or a command fails, or hands over no list, that is not the only origin, its kept content is
// read, or the list does without it, if it may. The failure begins with the set's name. Errors besides those
// of origins and lists: changed_meanwhile for a file that changed each time that it was read.
[[nodiscard]] tl::expected<std::variant<UnchangedList, ReadList>, GatherFailure>
read_in_sandbox(const ReadRequest& request);

// A list that the caller has made itself, as if it had been read. out_of_memory if there is no memory for its
// records.
[[nodiscard]] Result<ReadList> own_list(Feed list, std::string label);

// Whether the list's filter is or will be of an exact kind, so that there is nothing to verify.
[[nodiscard]] bool leads_to_exact(const control::FeedSpec& feed, const ReadList& list);

struct BuildRequest {
    std::string set{}; // its name, for messages
    control::FeedSpec feed{};
    bool exact = false; // the keys that verification needs, too; exceptions are left to verification
    SandboxSettings sandbox{};
};

struct BuiltList {
    Image image; // checked: the filter of this list
    // Distinct and rising, as many as the image holds; empty unless asked for.
    std::vector<sieve_key> exact{};
    std::vector<std::string> remarks{};
    std::chrono::milliseconds building{0};
};

// Builds the image of a list that was read. Of an image it is a copy. The error begins with the set's name.
[[nodiscard]] Result<BuiltList> build_in_sandbox(const BuildRequest& request, const ReadList& list);

struct JoinRequest {
    const control::JointTask& task;
    std::vector<UniqueFd> lists{}; // of each of its sets, as list_file.hpp
    SandboxSettings sandbox{};
};

// Builds the joint filter of the lists. Each list must be the one that the set's filter was built from. What
// comes is a joint filter (JointFilter::load()) that names the right set for each entry of each list; the
// rest of the task is for the caller to check (control/joint_task.hpp). `remark` is told what a person should
// know.
[[nodiscard]] Result<JointFilter> join_in_sandbox(const JoinRequest& request,
                                                  const std::function<void(const std::string&)>& remark);

} // namespace sieve::service
