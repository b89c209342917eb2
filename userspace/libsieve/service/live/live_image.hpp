// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A new image of a list of timed entries: from the state directory's files to the filters in force.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/service/lists/timed_list.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// What an empty list is made of, because a filter has at least one key: an address of the prefix that routers
// discard (RFC 6666), so that no packet has it.
inline constexpr Prefix placeholder{static_cast<uint128>(0x0100) << 112 | 0x5e1e'7ab1'e000'0001};
// Beside it in a table that is to have room for IPv4 addresses as well: one of those that nobody may have
// (RFC 1112, section 4).
inline constexpr Prefix ipv4_placeholder{SIEVE_V4_MAPPED | 0xf05e'7ab1};

// Whether an image of the set might take the place of something in force: a filter of that name, or a table
// on an interface that is to have the set. A hook that cannot be read may have one, and so may a program that
// speaks another version.
[[nodiscard]] bool something_is_in_force(control::Kernel& kernel, const Configuration& configuration,
                                         const std::string& set);

// Whether every hook that has the set, or may get it back, has this image of it.
[[nodiscard]] bool is_in_force_everywhere(control::Kernel& kernel, const std::string& set,
                                          const std::string& identity);

// Whether the configuration brings one of the sets to a table in force that has not got it.
[[nodiscard]] bool come_to_running_table(control::Kernel& kernel, const Configuration& configuration,
                                         const std::vector<std::string>& sets);

// What people are told of a set whose list was lost, and why it was.
inline constexpr char no_list_kept[] = "no list of it is kept";
[[nodiscard]] std::string lost_list_text(const std::string& set, const std::string& why);

// Takes out of `added` what this host depends on. Returns what was taken out, for people.
[[nodiscard]] std::vector<std::string> keep_out(std::vector<TimedEntry>& added, const SetConfiguration& set,
                                                const Protection& protection);

// The timed entries on a list that this host depends on, and the same for people.
struct KeptOut {
    std::vector<TimedEntry> timed_entries;
    std::vector<std::string> texts;
};
[[nodiscard]] KeptOut kept_out_of(const TimedList& list, const SetConfiguration& set,
                                  const Protection& protection);

// A guard's refusal of that list, with what a person may accept; nothing if a person has.
[[nodiscard]] std::optional<Refusal> unless_accepted(Refusal refusal, const SetConfiguration& set,
                                                     const TimedList& list, const ListSize& before,
                                                     const StateDirectory& state);

// Adds the timed entries of a list as write_next_list() writes it. bad_input, with the path, for a file that
// cannot be read, that is no list of timed entries, or that is damaged: `list` may have some of its timed
// entries then, and wrong ones.
[[nodiscard]] Status read_timed_list(const std::string& path, TimedList& list);

// Writes the list of the next image, before its identity is known.
[[nodiscard]] Status write_next_list(const TimedList& list, const StateDirectory& state,
                                     const std::string& set);

// Who puts a new image in force.
enum class PutInForce : std::uint8_t {
    here,     // where the set is in force
    by_cycle, // which the last good image waits for
};
// SetRecord::action until then: none that a set can have. Whoever dies on the way does not know whether the
// list or its action is in force.
inline constexpr char action_to_come[] = "to come";

// Stages the image with the list of write_next_list(), puts it in force, and makes it the last good one.
// `sources` are those of the list. `before_commit` is given the image's identity when it is staged. After an
// error, the last good image is the one that was. Without one, some hooks may still have another image.
struct PublishedImage {
    std::string identity;
    Status
        everywhere; // the first error of a hook that has the set, or may get it back, without the new image
};
[[nodiscard]] Result<PublishedImage>
publish_image(control::Kernel& kernel, const StateDirectory& state, const SetConfiguration& set, Image& image,
              std::uint64_t entries, std::vector<SourceProvenance> sources, PutInForce put_in_force,
              const std::function<Status(const std::string& identity)>& before_commit,
              const control::Observer& observer);

} // namespace sieve::service::live
