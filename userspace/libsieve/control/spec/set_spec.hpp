// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A set as an operator wants it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/feeds/text/list_format.hpp"
#include "libsieve/util/files/input.hpp"

namespace sieve::control {

// How a feed becomes a filter. An image is built already, so none of this applies to it.
struct FeedSpec {
    std::uint32_t fields = SIEVE_FIELD_SRC;
    ListFormat format{};
    BuildOptions build = of_automatic_kind();
    bool skip_invalid = false;   // count malformed lines instead of failing
    bool mask_host_bits = false; // clear the bits behind a prefix's length instead of failing
    bool allow_wide = false;     // take a list that covers most of an address family, too
    std::string except{};        // lists keys that must not match; empty: there are none
    // The names of the options that were chosen, for the error message if the source turns out to be an
    // image.
    std::vector<std::string> chosen;

  private:
    static BuildOptions of_automatic_kind() {
        BuildOptions options;
        options.kind.kind = automatic_kind;
        return options;
    }
};

// Verification keeps the keys themselves behind the filter.
struct Verification {
    std::string feed{}; // lists the keys; empty: the set's own sources do, and then they are feeds
    // The image's keys, distinct and rising, from a caller that has them; null: the feed lists them.
    std::shared_ptr<const std::vector<sieve_key>> keys{};
};

// Finds what a source, a feed of verification or of exceptions stands for.
using OpenSource = std::function<Result<Input>(const std::string& source)>;

struct SetSpec {
    std::string name;
    std::vector<std::string> sources; // one image, or one or more feeds
    OpenSource open_source{};         // may be asked for one again; null: they are paths (Input::of())
    FeedSpec feed;
    std::optional<WantedAction> action; // nothing: the opposite of the table's default
    std::optional<Verification> verify{};
    bool keeps_replies_out = false; // see SetAction; only for a set that drops or limits
    sieve_condition condition{};    // see SetAction
    bool keep_keys = false;         // the caller needs the keys beside the filter, to join it with others
    // Brings the filter in a map up to date, with the controllers' lock held, before packets meet it; null:
    // it is as its source says.
    std::function<void(std::uint32_t map_id)> catch_up{};
};

} // namespace sieve::control
