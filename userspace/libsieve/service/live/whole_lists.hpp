// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads the lists of a set that follows a stream as well: files, folders, URLs, commands. A server may take
// minutes, so another thread reads, and the stream goes on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/service/live/background.hpp"
#include "libsieve/service/sources/sandbox.hpp"

namespace sieve::service::live {

class WholeLists {
  public:
    // An end of `sandbox.cancel` ends the reading, too. `ended` is called on the other thread when result()
    // has something; null: nobody wants to know.
    WholeLists(SetConfiguration set, SandboxSettings sandbox, std::function<void()> ended)
        : set_(std::move(set)), sandbox_(std::move(sandbox)), reading_(std::move(ended)) {}

    struct Content {
        std::vector<TimedEntry> entries; // of Part::lists: addresses, and the prefixes that make up ranges
        std::vector<std::string> remarks;
        bool unchanged = false; // they are as the lists that were kept last, and `entries` is empty
    };

    // Begins to read, unless that is under way.
    void begin();
    [[nodiscard]] bool reads() const { return reading_.is_at_work(); }
    // What was read, once; nothing: it still reads. Errors: what sources and lists say, after the set's name.
    [[nodiscard]] std::optional<tl::expected<Content, GatherFailure>> result();
    // The lists that result() gave are on the list.
    void keep() { kept_ = read_; }
    // The next lists count as new ones.
    void forget() { kept_.reset(); }

    // Whether a file has changed, come or gone since the last begin(). Servers and commands are not asked.
    [[nodiscard]] bool files_changed() const { return stamps() != stamps_; }

  private:
    using Read = tl::expected<std::pair<Content, KnownList>, GatherFailure>;
    using Stamps = std::vector<std::pair<std::string, FileStamp>>;

    [[nodiscard]] static Read read(const SetConfiguration& set, const SandboxSettings& sandbox,
                                   std::optional<KnownList> known);
    [[nodiscard]] Stamps stamps() const;

    SetConfiguration set_;
    SandboxSettings sandbox_;
    std::optional<KnownList> kept_;
    std::optional<KnownList> read_;
    Stamps stamps_; // of its files, at the last begin()
    Background<Read> reading_;
};

} // namespace sieve::service::live
