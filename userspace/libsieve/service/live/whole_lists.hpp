// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads the lists of a set that follows a stream as well: files, folders, URLs, commands. A server may take
// minutes, so another thread reads, and the stream goes on. Where a server or a command fails, what it said
// last is read with the others' news.
#pragma once

#include <cstdint>
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
#include "libsieve/service/state/state_directory.hpp"

namespace sieve::service::live {

class WholeLists {
  public:
    // An end of `sandbox.cancel` ends the reading, too. `ended` is called on the other thread when result()
    // has something; null: nobody wants to know. `state` must outlive it.
    WholeLists(SetConfiguration set, SandboxSettings sandbox, const StateDirectory& state,
               std::function<void()> ended)
        : set_(std::move(set)), sandbox_(std::move(sandbox)), state_(&state), reading_(std::move(ended)) {}

    // Which sources may be done without that fail, and of which nothing is kept.
    enum class MayLack : std::uint8_t {
        none,        // members could be missed, of what is in force and nobody knows
        never_taken, // those of which nothing can be on the list
        all,         // nothing of any is on the list
    };

    struct Content {
        std::vector<TimedEntry> entries; // of Part::lists: addresses, and the prefixes that make up ranges
        std::vector<std::string> remarks;
        bool unchanged = false; // they are as the lists that were kept last, and `entries` is empty
        // A source is among them that the list before had to do without.
        bool has_first_answer = false;
        // The first failure of a source whose last content is among them, or nothing of it.
        std::optional<GatherFailure> behind{};
    };

    // Begins to read, unless that is under way.
    void begin(MayLack may_lack);
    [[nodiscard]] bool reads() const { return reading_.is_at_work(); }
    // What was read, once; nothing: it still reads. Errors: what sources and lists say, after the set's name.
    [[nodiscard]] std::optional<tl::expected<Content, GatherFailure>> result();
    // The lists that result() gave are on the list.
    void keep() {
        kept_ = read_;
        are_taken_ = true;
    }
    // Whether the state directory knows the lists that are on the list, for when a source of them fails. If
    // not, note() tells it, once the set has a record.
    [[nodiscard]] bool are_noted() const;
    void note();
    // The next lists count as new ones.
    void forget() { kept_.reset(); }

    // Whether a file has changed, come or gone since the last begin(). Servers and commands are not asked.
    [[nodiscard]] bool files_changed() const { return stamps() != stamps_; }

  private:
    struct Lists {
        Content content{};
        KnownList known{};
        SourceVisit visit{};
    };
    using Read = tl::expected<Lists, GatherFailure>;
    using Stamps = std::vector<std::pair<std::string, FileStamp>>;

    [[nodiscard]] static Read read(const SetConfiguration& set, const SandboxSettings& sandbox,
                                   const StateDirectory& state, MayLack may_lack,
                                   std::optional<KnownList> known);
    [[nodiscard]] Stamps stamps() const;

    SetConfiguration set_;
    SandboxSettings sandbox_;
    const StateDirectory* state_;
    std::optional<KnownList> kept_;
    std::optional<KnownList> read_;
    SourceVisit visit_;      // that read_ is of
    bool are_taken_ = false; // those of read_
    Stamps stamps_;          // of its files, at the last begin()
    Background<Read> reading_;
};

} // namespace sieve::service::live
