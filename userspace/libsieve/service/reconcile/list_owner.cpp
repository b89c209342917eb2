// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/list_owner.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/live/live_set.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/sources/origin.hpp"
#include "libsieve/service/state/ban_ledger.hpp"
#include "libsieve/util/files/digest.hpp"

namespace sieve::service {

namespace {

// As a record names them, exceptions among them.
SourceIdentities sources_now(const SetConfiguration& set) {
    SourceIdentities all = source_identities(set.sources);
    if (!all.empty() && !set.feed.except.empty()) all.known.insert(exceptions_identity(set.feed.except));
    return all;
}

// Lists that are no longer of the sets that they are kept for.
class FreeLists {
  public:
    FreeLists(const Configuration& configuration, const StateDirectory& state)
        : configuration_(configuration), state_(state) {
        for (const std::string& name : state.sets()) {
            std::optional<SetRecord> record = state.named(name);
            if (!record || record->sources.empty()) continue;
            const SetConfiguration* set = configuration.find_set(name);
            if (set == nullptr || shares_no_source(*record, *set)) free_.emplace(name, std::move(*record));
        }
    }

    [[nodiscard]] bool any() const { return !free_.empty(); }
    // Whether the set has a list that nobody else may take.
    [[nodiscard]] bool has_its_own(const std::string& set) const {
        return !free_.contains(set) && !taken_.contains(set) && state_.named(set).has_value();
    }
    // The one that had the set's sources, of which the set's options may make the same filter. Without such
    // options, it is built anew.
    [[nodiscard]] std::optional<std::string> take_for(const SetConfiguration& set, bool same_options) {
        const SourceIdentities sources = sources_now(set);
        std::vector<std::string> found;
        for (const auto& [name, record] : free_) {
            const bool fits = !taken_.contains(name) && sources.may_be(identities_of(record.sources)) &&
                              (!same_options || record.build == digest_of(build_text(set)));
            // Only a set that changes in place knows what its image lacks.
            if (fits && (live::is_live(set) || !live::has_changed_since_image(state_, name, record)))
                found.push_back(name);
        }
        // Two streams of one server, or two ledgers of bans, hold different lists.
        const bool sure = found.size() == 1 || (found.size() > 1 && same_options && !follows_stream(set));
        return sure ? std::optional(take(found.front())) : std::nullopt;
    }
    // Of a set that is new, the only one that is gone and had a stream of it: what other sources it had stays
    // until the set's own have said their lists, as for a set that keeps its name.
    [[nodiscard]] std::optional<std::string> take_stream_for(const SetConfiguration& set) {
        if (state_.named(set.name)) return std::nullopt;
        return take_one([&](const std::set<std::string>& then) {
            return std::ranges::any_of(set.sources, [&](const SourceSpec& source) {
                return is_stream(source) && then.contains(source_name(source));
            });
        });
    }
    // Of a set that gets bans besides what it has, the only one that is gone and had bans.
    [[nodiscard]] std::optional<std::string> take_bans_for(const SetConfiguration& set) {
        const std::string bans = source_name(BanSpec{});
        const std::optional<SetRecord> record = state_.named(set.name);
        if (!record || identities_of(record->sources).contains(bans)) return std::nullopt;
        return take_one([&](const std::set<std::string>& then) { return then.contains(bans); });
    }

  private:
    template <class Fits>
    std::optional<std::string> take_one(const Fits& fits) {
        std::vector<std::string> found;
        for (const auto& [name, record] : free_)
            if (configuration_.find_set(name) == nullptr && !taken_.contains(name) &&
                fits(identities_of(record.sources)))
                found.push_back(name);
        return found.size() == 1 ? std::optional(take(found.front())) : std::nullopt;
    }
    std::string take(const std::string& name) {
        taken_.insert(name);
        return name;
    }
    static bool shares_no_source(const SetRecord& record, const SetConfiguration& set) {
        const SourceIdentities now = sources_now(set);
        return !now.empty() && std::ranges::none_of(record.sources, [&](const SourceProvenance& source) {
            return now.may_have(source.source);
        });
    }

    const Configuration& configuration_;
    const StateDirectory& state_;
    std::map<std::string, SetRecord> free_;
    std::set<std::string> taken_;
};

// No set has such a name.
std::string on_its_way(const std::string& set) {
    return "." + set;
}

// Whoever dies on the way leaves a mark too many, which only has the set compared with its record.
bool mark_as_renamed(const std::string& set, const StateDirectory& state) {
    std::optional<SetRecord> record = state.named(set);
    if (!record) return false;
    record->former.insert(set);
    return state.commit(set, *record).has_value();
}

bool move_all_of(const SetConfiguration& set, const std::string& from, const std::string& to,
                 const StateDirectory& state, bool copies = false) {
    const auto move = [&](const std::string& one, const std::string& other) {
        if (!(copies ? state.copy(one, other) : state.rename(one, other))) return false;
        state.give_refused(one, other); // it is a list of the sources
        return true;
    };
    if (!move(from, to)) return false;
    if (follows_stream(set)) (void)move(live::range_set_name(from), live::range_set_name(to));
    return true;
}

} // namespace

bool is_of_other_sources(const SetRecord& record, const SetConfiguration& set) {
    const SourceIdentities now = source_identities(set.sources);
    return !now.empty() && std::ranges::any_of(record.sources, [&](const SourceProvenance& source) {
        return source.source != record.exceptions && !now.may_have(source.source);
    });
}

std::set<std::string> take_over_renamed(const Configuration& configuration, const StateDirectory& state,
                                        const control::Observer& observer) {
    FreeLists free(configuration, state);
    if (!free.any()) return {};
    std::map<const SetConfiguration*, std::string> before; // the name that the set's list has now
    for (const bool same_options : {true, false})
        for (const SetConfiguration& set : configuration.sets) {
            if (set.sources.empty() || before.contains(&set) || free.has_its_own(set.name)) continue;
            if (auto name = free.take_for(set, same_options)) before.emplace(&set, std::move(*name));
        }
    // A set may have got another name and other sources at once.
    for (const SetConfiguration& set : configuration.sets)
        if (follows_stream(set) && !before.contains(&set) && !free.has_its_own(set.name))
            if (auto name = free.take_stream_for(set)) before.emplace(&set, std::move(*name));
    std::set<std::string> named; // sets that get another list
    for (const auto& [set, name] : before) named.insert(set->name);
    const auto take_bans = [&](const SetConfiguration& set, const std::string& from) {
        const Status moved = BanLedger(state.path(), set.name).take_over(from, live::current_time());
        if (!moved)
            observer.remark(fmt::format("set {}: {}; the bans of set {} stay where they are", set.name,
                                        moved.error().message, from));
        return moved.has_value();
    };
    for (const SetConfiguration& set : configuration.sets)
        if (follows_bans(set) && !before.contains(&set))
            if (const auto name = free.take_bans_for(set); name && take_bans(set, *name))
                observer.remark(fmt::format("set {}: takes over the bans of set {}", set.name, *name));
    // Sets may have exchanged their names.
    std::erase_if(before, [&](const auto& one) {
        const auto& [set, name] = one;
        if (follows_bans(*set) && !take_bans(*set, name)) return true;
        if (!mark_as_renamed(name, state)) return true;
        // A set that waits for the list of its new sources has the old one until then.
        const bool waits = configuration.find_set(name) != nullptr && !named.contains(name);
        return !move_all_of(*set, name, on_its_way(name), state, waits);
    });
    std::set<std::string> taken;
    for (const auto& [set, name] : before) {
        if (!move_all_of(*set, on_its_way(name), set->name, state)) continue;
        taken.insert(set->name);
        observer.remark(fmt::format("set {}: takes over the list of set {}, which had the same sources",
                                    set->name, name));
    }
    for (const SetConfiguration& set : configuration.sets) {
        if (set.sources.empty() || follows_stream(set) || state.named(set.name)) continue;
        const auto twin = std::ranges::find_if(before, [&](const auto& one) {
            const SetConfiguration& other = *one.first;
            return taken.contains(other.name) && sources_now(other) == sources_now(set) &&
                   build_text(other) == build_text(set) && !live::is_live(other);
        });
        if (twin == before.end() || !state.copy(twin->first->name, set.name)) continue;
        observer.remark(fmt::format("set {}: begins with the list of set {}, which has the same sources",
                                    set.name, twin->first->name));
    }
    return taken;
}

std::set<std::string> sets_that_await_bans(const Configuration& configuration, const StateDirectory& state) {
    FreeLists free(configuration, state);
    const auto has_bans = [&](const std::string& set) {
        const auto bans = BanLedger(state.path(), set).bans(live::current_time());
        return bans && !bans->empty();
    };
    std::set<std::string> waiting;
    for (const SetConfiguration& set : configuration.sets) {
        if (!follows_bans(set)) continue;
        std::optional<std::string> from = free.take_bans_for(set);
        if (!state.named(set.name)) {
            from = free.take_for(set, true);
            if (!from) from = free.take_for(set, false);
            if (!from) from = free.take_stream_for(set);
        }
        if (from && std::filesystem::exists(ban_ledger_path(state.path(), *from)) && !has_bans(set.name))
            waiting.insert(set.name);
    }
    return waiting;
}

} // namespace sieve::service
