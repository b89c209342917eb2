// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Who reads the lists of this process: this process, or one with fewer rights. Implemented in feed.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// What is asked of the inputs.
struct ListQuestion {
    std::uint32_t fields = 0;
    const FeedOptions& options;
    std::span<const sieve_key> sought{}; // whose places are asked for
    bool may_be_empty = false;           // no entry is no error
};

struct FoundList {
    Feed feed;
    std::vector<std::string> places{}; // of each key that is sought: "FILE:LINE"; empty: it is nowhere
};

// Reads the inputs in this process. They are distinct, and there is one at least.
[[nodiscard]] Result<FoundList> read_here(std::span<Input> inputs, const ListQuestion& question);

// The error of inputs that have no entry, of which `feed` came.
[[nodiscard]] tl::unexpected<Error> no_keys(const Feed& feed, std::span<const Input> inputs);

using ListReader = std::function<Result<FoundList>(std::span<Input> inputs, const ListQuestion& question)>;

// From now on, read_feed(), read_feed_if_any() and find_keys() leave reading to `reader`, whoever calls them.
// So no text of a list gets past it. Null, the default: read_here(). To be called before threads are started.
void let_lists_be_read_by(ListReader reader);

} // namespace sieve
