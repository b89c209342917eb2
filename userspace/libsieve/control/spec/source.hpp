// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where a set's filter comes from: an image, or feeds that are built on the way.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// What a set is made of: inputs that were found and that nobody has read yet.
struct SetInputs {
    std::vector<Input> sources;        // one image, or feeds
    std::optional<Input> verify_feed;  // lists the keys of a verified set; nothing: the sources list them
    std::optional<Input> exceptions{}; // lists keys that must not match
};

// The input that one of the set's sources stands for.
[[nodiscard]] Result<Input> open_source(const SetSpec& set, const std::string& source);

// Finds the inputs of each set, in order. Errors: bad_input if an input cannot be read; invalid_request if
// two of them, or one of them and `other`, would read the same pipe.
[[nodiscard]] Result<std::vector<SetInputs>> find_inputs(std::span<const SetSpec> sets,
                                                         const Input* other = nullptr);

// The two steps of build_from_feeds(), for callers that look at the list between them. The first reads the
// feeds; no entry is an error unless the list may be empty. The second builds the set from a list that came
// from these feeds.
[[nodiscard]] Result<Feed> read_list(std::span<Input> feeds, const FeedSpec& spec, const Observer& observer,
                                     bool may_be_empty = false);
[[nodiscard]] Result<BuiltSet> build_list(Feed list, std::span<const Input> feeds, const FeedSpec& spec,
                                          const Observer& observer);
// Likewise of a list that came from elsewhere; the label among the build's options names its feeds. No
// exception may be a member.
[[nodiscard]] Result<BuiltSet> build_list(Feed list, const FeedSpec& spec, const Observer& observer,
                                          const Exceptions& exceptions = {});

// The steps that treat exceptions, for the same callers: the keys of such fields that must not match, a list
// without them, and what the builder is told. take_out() says what it took; bad_input: nothing is left
// of a list that may not be empty; `name` names the exceptions.
[[nodiscard]] Result<Feed> read_exceptions(Input& input, std::uint32_t fields, const Observer& observer);
[[nodiscard]] Status take_out(Feed& list, const Feed& exceptions, const std::string& name,
                              const Observer& observer, bool may_be_empty = false);
[[nodiscard]] Exceptions exceptions_of(Feed exceptions);

// Reads the feeds and builds a set from them. Remarks say what was skipped and why, and which members were
// taken out because `exceptions`, if there are any, lists them.
[[nodiscard]] Result<BuiltSet> build_from_feeds(std::span<Input> feeds, const FeedSpec& spec,
                                                const Observer& observer, Input* exceptions = nullptr);

// A filter that can be loaded into the kernel.
struct OpenedSet {
    Image image;
    std::optional<std::vector<sieve_key>> exact; // the set's keys, if they are to verify its matches
    std::optional<KeySet> keys{};                // likewise, if SetSpec::keep_keys asks for them
};

// Reads or builds the set's image. Errors: those of reading and building; invalid_request for a feed's
// options on an image, for an image among several sources, and for a feed to be verified with another feed;
// needs_feed for an image to be verified without the feed that lists its keys.
//
// `find_spared`, if any, returns keys that a filter should not match by a false positive. Unlike exceptions
// they are no promise: the builder spares them if that takes few tries (build/exceptions.hpp). It is called
// only if a filter is built that can spare keys, and in this thread.
using FindKeys = std::function<Result<std::vector<sieve_key>>()>;
[[nodiscard]] Result<OpenedSet> open_set(const SetSpec& spec, SetInputs inputs, const Observer& observer,
                                         const FindKeys& find_spared = {});

// The same, but finds the inputs first.
[[nodiscard]] Result<OpenedSet> open_set(const SetSpec& spec, const Observer& observer);

} // namespace sieve::control
