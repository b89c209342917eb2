// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a child does with lists, once it is confined: it reads them, builds a filter of what was read, or
// joins several sets. Descriptors are those of the order (child_messages.hpp); they stay open.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Is told what the work is at: "reading a.txt".
using TellProgress = std::function<void(const std::string& at)>;

// Each part of the work also tells how much of it is done, if somebody wants to know.

// Parses the lists, and writes what they hold to a pipe, as list_stream.hpp. No entry is no error.
[[nodiscard]] Result<ListDone> stream_lists(const ListOrder& order, std::span<const int> lists, int to,
                                            const Progress& progress = {});

// How many files come before the lists: those for the list and for its exceptions.
inline constexpr std::size_t read_descriptors = 2;
// The files of a build: the list, its exceptions, and the image.
inline constexpr std::size_t build_descriptors = 3;
// How many files come before the lists of the sets to be joined: the questions, and the joint filter.
inline constexpr std::size_t join_descriptors = 2;

// Unpacks and parses the lists, and writes them as one. Errors: those of the lists; facts: which of them is
// to blame.
[[nodiscard]] Result<ReadDone> read_lists(const ReadOrder& order, std::span<const int> descriptors,
                                          const TellProgress& tell_progress, const Progress& progress = {});

// Builds the filter, and writes the image.
[[nodiscard]] Result<WorkDone> build_filter(const BuildOrder& order, std::span<const int> descriptors,
                                            const TellProgress& tell_progress, const Progress& progress = {});

// Builds the joint filter of the lists, each of which must be the one that its set's filter was built from,
// and writes it.
[[nodiscard]] Result<WorkDone> join_lists(const JoinOrder& order, std::span<const int> descriptors,
                                          const TellProgress& tell_progress, const Progress& progress = {});

} // namespace sieve::service
