// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/live_image.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/control/table/swap.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/lists/decisions.hpp"
#include "libsieve/service/lists/list_digest.hpp"
#include "libsieve/service/safety/acceptance.hpp"
#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::live {

namespace {

// The first line of a list, and how the last one begins, which has the digest of all before it.
constexpr std::string_view list_head = "# xdp-sieve claims 2";
constexpr std::string_view list_end = "# digest ";

// In the place of an identity, for the list of an image that is not built yet.
constexpr const char* next_list = "next";
constexpr const char* next_list_file = "next.list";

// A timed entry whose number is 0 and that never ends needs no comment.
std::string line_of(const TimedEntry& timed_entry) {
    std::string line = prefix_text(timed_entry.prefix);
    if (timed_entry.until != never)
        line += fmt::format(" # {} {}", timed_entry.id, timed_entry.until.time_since_epoch().count());
    else if (timed_entry.id != 0)
        line += fmt::format(" # {}", timed_entry.id);
    line += '\n';
    return line;
}

template <class Number>
bool take_number(std::string_view& from, Number& number) {
    while (!from.empty() && from.front() == ' ') from.remove_prefix(1);
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), number);
    if (error != std::errc()) return false;
    from.remove_prefix(static_cast<std::size_t>(end - from.data()));
    return true;
}

// Nothing: the line is no timed entry.
std::optional<TimedEntry> timed_entry_of(std::string_view line) {
    const std::size_t comment = line.find(" #");
    const Result<Prefix> prefix = parse_decision_value(line.substr(0, comment), true);
    if (!prefix) return std::nullopt;
    TimedEntry timed_entry{*prefix, 0, never};
    if (comment == std::string_view::npos) return timed_entry;
    std::string_view rest = line.substr(comment + 2);
    std::int64_t until = 0;
    if (!take_number(rest, timed_entry.id)) return std::nullopt;
    if (take_number(rest, until)) timed_entry.until = Time(std::chrono::milliseconds(until));
    return timed_entry;
}

// A list as text, with an entry a line, so that it is also a feed. The number and the end of a timed entry
// are in its comment: "192.0.2.7 # 12 1764000000000". The last line has the digest of those before it.
Status write_timed_list(const TimedList& list, const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    Digest digest;
    const auto write = [&](const std::string& line) {
        file << line;
        digest.add(line);
    };
    write(fmt::format("{}\n", list_head));
    list.for_each([&](const TimedEntry& timed_entry) { write(line_of(timed_entry)); });
    file << list_end << digest.hex() << '\n';
    file.close();
    if (!file) return bad_input(fmt::format("{}: cannot be written", printable(path)));
    return {};
}

struct Swaps {
    bool any = false;     // hook has the new image
    bool refused = false; // by a hook where the set is in force
    Status all;           // the first error
};

// Whether a packet may meet the set there: now, or when the change on probation is taken back.
bool has_set(control::Kernel& kernel, const kernel::Hook& hook, const std::string& set) {
    const std::optional<kernel::TableInForce> returning = kernel.read_returning(hook);
    return kernel.read_table(hook).find(set) != nullptr || (returning && returning->find(set) != nullptr);
}

Result<Swaps> swap_everywhere(control::Kernel& kernel, const std::string& set, const std::string& path,
                              const control::Observer& observer) {
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, control::hooks_of(kernel, {}));
    Swaps swaps;
    for (const kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        const std::optional<kernel::TableInForce> returning = kernel.read_returning(hook);
        const kernel::TableInForce now = kernel.read_table(hook);
        if (now.find(set) == nullptr) {
            if (swaps.all && returning && returning->find(set) != nullptr) // the image before may come back
                swaps.all = control::on_probation(hook, now.probation.value_or(std::chrono::nanoseconds(0)));
            continue;
        }
        control::SetSpec spec;
        spec.name = set;
        spec.sources = {path};
        auto done = control::swap(kernel, {.interface = hook.interface.name, .point = hook.point},
                                  std::move(spec), observer);
        if (done || done.error().kind == ErrorKind::unfinished) {
            swaps.any = true;
            continue;
        }
        swaps.refused = true;
        if (swaps.all) swaps.all = tl::unexpected(std::move(done.error()));
    }
    return swaps;
}

// Null: this host does not depend on it.
const ProtectedRange* protecting_range(const TimedEntry& timed_entry,
                                       const std::vector<ProtectedRange>& ranges) {
    const AddressRange range = timed_entry.prefix.range();
    const auto found = std::find_if(ranges.begin(), ranges.end(), [&](const ProtectedRange& one) {
        return one.range.first <= range.last && range.first <= one.range.last;
    });
    return found != ranges.end() ? &*found : nullptr;
}

std::string text_of(const TimedEntry& timed_entry, const ProtectedRange& range) {
    return fmt::format("{}: {}", prefix_text(timed_entry.prefix), range.what);
}

} // namespace

bool come_to_running_table(control::Kernel& kernel, const Configuration& configuration,
                           const std::vector<std::string>& sets) {
    const Result<std::vector<kernel::Hook>> hooks = control::hooks_of(kernel, {});
    return !hooks || std::ranges::any_of(*hooks, [&](const kernel::Hook& hook) {
        const InterfaceConfiguration* entry = entry_for(configuration, hook.interface.name, hook.point);
        if (entry == nullptr || !hook.speaks_our_version()) return false;
        const kernel::TableInForce now = kernel.read_table(hook);
        return std::ranges::any_of(sets, [&](const std::string& set) {
            return std::ranges::find(entry->sets, set) != entry->sets.end() && now.find(set) == nullptr;
        });
    });
}

bool something_is_in_force(control::Kernel& kernel, const Configuration& configuration,
                           const std::string& set) {
    const Result<std::vector<kernel::Hook>> hooks = control::hooks_of(kernel, {});
    return !hooks || std::ranges::any_of(*hooks, [&](const kernel::Hook& hook) {
        if (!hook.speaks_our_version() || has_set(kernel, hook, set)) return true;
        const auto is_to_have_it = [&](kernel::HookPoint point) {
            const InterfaceConfiguration* entry = entry_for(configuration, hook.interface.name, point);
            return entry != nullptr && std::ranges::find(entry->sets, set) != entry->sets.end();
        };
        // The table may be on its way to another hook. One that stays gets the set as a new one.
        return !is_to_have_it(hook.point) && std::ranges::any_of(kernel::all_hook_points, is_to_have_it);
    });
}

bool is_in_force_everywhere(control::Kernel& kernel, const std::string& set, const std::string& identity) {
    const Result<std::vector<kernel::Hook>> hooks = control::hooks_of(kernel, {});
    const auto has_it = [&](const kernel::TableInForce& table) {
        const kernel::SetInForce* found = table.find(set);
        if (found == nullptr) return true;
        const auto filter = kernel.open_filter(found->map_id);
        return filter && identity_text((*filter)->file()) == identity;
    };
    return hooks && std::ranges::all_of(*hooks, [&](const kernel::Hook& hook) {
               if (!hook.speaks_our_version()) return true;
               const std::optional<kernel::TableInForce> returning = kernel.read_returning(hook);
               return has_it(kernel.read_table(hook)) && (!returning || has_it(*returning));
           });
}

std::string lost_list_text(const std::string& set, const std::string& why) {
    return fmt::format(
        "set {}: {}; what is in force, if anything is, stays until the sources have said all of their lists, "
        "and then the set is built anew",
        set, why);
}

std::vector<std::string> keep_out(std::vector<TimedEntry>& added, const SetConfiguration& set,
                                  const Protection& protection) {
    std::vector<std::string> kept_out;
    const std::vector<ProtectedRange> ranges = protected_ranges(set, protection);
    if (ranges.empty()) return kept_out;
    std::erase_if(added, [&](const TimedEntry& timed_entry) {
        const ProtectedRange* found = protecting_range(timed_entry, ranges);
        if (found != nullptr) kept_out.push_back(text_of(timed_entry, *found));
        return found != nullptr;
    });
    return kept_out;
}

KeptOut kept_out_of(const TimedList& list, const SetConfiguration& set, const Protection& protection) {
    KeptOut kept_out;
    const std::vector<ProtectedRange> ranges = protected_ranges(set, protection);
    if (ranges.empty()) return kept_out;
    list.for_each([&](const TimedEntry& timed_entry) {
        const ProtectedRange* found = protecting_range(timed_entry, ranges);
        if (found == nullptr) return;
        kept_out.timed_entries.push_back(timed_entry);
        kept_out.texts.push_back(text_of(timed_entry, *found));
    });
    return kept_out;
}

std::optional<Refusal> unless_accepted(Refusal refusal, const SetConfiguration& set, const TimedList& list,
                                       const ListSize& before, const StateDirectory& state) {
    Feed feed(set.feed.fields);
    list.for_each_prefix([&](const Prefix& prefix) { feed.ranges.push_back(prefix.range()); });
    refusal.list = refused_list(refusal, digest_of_list(feed), size_of(set, feed), before);
    if (refusal.list && state.is_accepted(set.name, *refusal.list)) return std::nullopt;
    return refusal;
}

Status read_timed_list(const std::string& path, TimedList& list) {
    std::error_code error;
    const bool is_file = std::filesystem::is_regular_file(path, error); // a pipe would be waited for
    std::ifstream file(is_file ? path : std::string(), std::ios::binary);
    const auto fault = [&](const char* what) {
        return bad_input(fmt::format("{}: {}", printable(path), what));
    };
    if (!file) return fault("cannot be read");
    Digest digest;
    std::string line;
    const auto next_line = [&] {
        if (!std::getline(file, line)) return false;
        line += '\n';
        return true;
    };
    if (!next_line() || line != fmt::format("{}\n", list_head))
        return fault("found something else than a list that the daemon keeps");
    do {
        digest.add(line);
        line.pop_back();
        if (const std::optional<TimedEntry> timed_entry = timed_entry_of(line)) list.add(*timed_entry);
    } while (next_line() && !line.starts_with(list_end));
    if (file.bad()) return fault("cannot be read");
    if (line != fmt::format("{}{}\n", list_end, digest.hex()))
        return fault("is damaged: its digest is another one");
    return {};
}

Status write_next_list(const TimedList& list, const StateDirectory& state, const std::string& set) {
    return state.write_beside(set, next_list_file,
                              [&](const std::string& path) { return write_timed_list(list, path); });
}

Result<PublishedImage> publish_image(control::Kernel& kernel, const StateDirectory& state,
                                     const SetConfiguration& set, Image& image, std::uint64_t entries,
                                     std::vector<SourceProvenance> sources, PutInForce put_in_force,
                                     const std::function<Status(const std::string& identity)>& before_commit,
                                     const control::Observer& observer) {
    const sieve_file& file = image.file();
    SetRecord record;
    record.identity = identity_text(file);
    record.build = digest_of(build_text(set));
    record.entries = entries;
    record.keys = file.keys;
    record.bytes = image.bytes();
    record.expected_fpr = rate_from_bits(file.expected_fpr);
    record.built_at = std::time(nullptr);
    record.sources = std::move(sources);
    if (const auto before = state.named(set.name)) { // a cycle changes that
        record.action = before->action;
        record.former = before->former;
        if (follows_stream(set)) record.beside = before->beside;
    }
    if (put_in_force == PutInForce::by_cycle) record.action = action_to_come;
    PublishedImage done{.identity = record.identity, .everywhere = {}};
    const auto publish = [&]() -> Status {
        SIEVE_ASSIGN(const UniqueFd list, state.open_list(set.name, next_list));
        SIEVE_TRY(state.stage(set.name, image, list.get(), {}));
        SIEVE_TRY(before_commit(record.identity));
        if (put_in_force == PutInForce::by_cycle) return {};
        SIEVE_ASSIGN(Swaps swaps, swap_everywhere(kernel, set.name,
                                                  state.image_path(set.name, record.identity), observer));
        if (swaps.refused && !swaps.any) return swaps.all;
        done.everywhere = std::move(swaps.all);
        return {};
    };
    Status published = publish();
    state.remove_beside(set.name, next_list_file);
    if (!published) {
        std::error_code error;
        for (const std::string& path :
             {state.image_path(set.name, record.identity), state.list_path(set.name, record.identity)})
            std::filesystem::remove(path, error);
        return tl::unexpected(std::move(published.error()));
    }
    SIEVE_TRY(state.commit(set.name, record));
    return done;
}

} // namespace sieve::service::live
