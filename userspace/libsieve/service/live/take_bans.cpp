// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/take_bans.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/util/text/name_some.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::live {

namespace {

bool adds(const BanChange& change) {
    return change.step == BanStep::add;
}

// Whether an address is in one of these. A host may have thousands of sessions, and a change a thousand bans.
std::function<bool(uint128 address)> covered_by(const std::vector<TimedEntry>& entries) {
    std::vector<AddressRange> ranges;
    for (const TimedEntry& one : entries) ranges.push_back(one.prefix.range());
    return [merged = merge_ranges(std::move(ranges))](uint128 address) {
        return holds_address(merged, address);
    };
}

Status check_host(const std::vector<BanChange>& changes, const Configuration& configuration,
                  const SetConfiguration& set, HostAddresses& host) {
    std::vector<TimedEntry> added;
    for (const BanChange& change : changes)
        if (adds(change)) added.push_back({.prefix = change.prefix});
    if (added.empty()) return {};
    SIEVE_ASSIGN(std::vector<HostAddress> addresses, host.read_some(covered_by(added)));
    const std::vector<std::string> depends =
        keep_out(added, set, protection_of(configuration, set, std::move(addresses)));
    if (depends.empty()) return {};
    return bad_input(
        fmt::format("set {}: this host depends on {}; nothing was banned", set.name, name_some(depends)));
}

// Single addresses are never too many.
Status check_coverage(const std::vector<BanChange>& changes, const SetConfiguration& set, BanLedger& ledger,
                      Time now) {
    const auto has_range = [](const BanChange& change) { return adds(change) && !change.prefix.is_single(); };
    if (std::ranges::none_of(changes, has_range)) return {};
    const auto is_range = [](const Prefix& prefix) { return !prefix.is_single(); };
    SIEVE_ASSIGN(Bans ranges, ledger.bans(now, is_range));
    for (const BanChange& change : changes)
        if (change.step == BanStep::flush || is_range(change.prefix)) change_bans(ranges, change);
    Feed feed(set.feed.fields);
    for (const auto& [prefix, ban] : ranges) feed.ranges.push_back(prefix.range());
    const std::optional<Refusal> refusal = check_list(set, feed, std::nullopt, Protection{});
    if (refusal) return bad_input(fmt::format("{}; nothing was banned", refusal->message));
    return {};
}

// A ledger may hold a million bans, and a change be about one.
Status count(const std::vector<BanChange>& changes, BanLedger& ledger, Time now,
             const std::function<bool(const Prefix& single)>& banned, TakenBans& taken) {
    std::unordered_set<Prefix, PrefixHash> named;
    bool flushes = false;
    bool are_banned = banned != nullptr;
    for (const BanChange& change : changes) {
        flushes = flushes || change.step == BanStep::flush;
        are_banned = are_banned && change.step == BanStep::remove && change.prefix.is_single() &&
                     banned(change.prefix);
        named.insert(change.prefix);
    }
    if (are_banned) {
        taken.lifted = named.size();
        return {};
    }
    SIEVE_ASSIGN(Bans bans,
                 ledger.bans(now, [&](const Prefix& prefix) { return flushes || named.contains(prefix); }));
    for (const BanChange& change : changes) {
        const std::size_t before = bans.size();
        if (change.step == BanStep::remove && !bans.contains(change.prefix))
            taken.absent.push_back(change.prefix);
        change_bans(bans, change);
        if (bans.size() < before) taken.lifted += before - bans.size();
    }
    return {};
}

} // namespace

// A ledger that cannot be used is no wrong address.
template <class T>
static Result<T> of_ledger(Result<T> done) {
    if (!done && done.error().kind == ErrorKind::bad_input) done.error().kind = ErrorKind::kernel_refused;
    return done;
}

std::vector<std::string> sets_with_bans(const Configuration& configuration) {
    std::vector<std::string> names;
    for (const SetConfiguration& set : configuration.sets)
        if (follows_bans(set)) names.push_back(set.name);
    return names;
}

Result<std::string> set_for_bans(const Configuration& configuration, const std::string& named) {
    const std::vector<std::string> sets = sets_with_bans(configuration);
    if (sets.empty())
        return invalid_request(
            "no set of the configuration has bans; expected one with sources = [\"bans\"]");
    const std::string choice = fmt::format("{}", fmt::join(sets, ", "));
    if (named.empty()) {
        if (sets.size() == 1) return sets.front();
        return invalid_request(fmt::format("the sets {} have bans: expected --set with one of them", choice));
    }
    if (std::ranges::find(sets, named) != sets.end()) return named;
    return invalid_request(
        fmt::format("set {} has no bans in the configuration: expected {}", printable(named, 64), choice));
}

Result<TakenBans> take_bans(const BanRequest& request, const Configuration& configuration,
                            HostAddresses& host, BanLedger& ledger, Time now,
                            const std::function<bool(const Prefix& single)>& banned) {
    const SetConfiguration* set = configuration.find_set(request.set);
    if (set == nullptr) return invalid_request(fmt::format("there is no set {}", printable(request.set, 64)));
    SIEVE_TRY(check_host(request.changes, configuration, *set, host));
    SIEVE_TRY(check_coverage(request.changes, *set, ledger, now));
    TakenBans taken{.set = request.set};
    if (request.counts) {
        SIEVE_TRY(of_ledger(count(request.changes, ledger, now, banned, taken)));
        if (taken.absent.size() == request.changes.size()) return taken;
    }
    SIEVE_TRY(of_ledger(ledger.append(request.changes)));
    taken.mark = ledger.mark();
    return taken;
}

Result<std::vector<SetBans>> list_bans(const Configuration& configuration, const std::string& set, Time now) {
    std::vector<std::string> names = sets_with_bans(configuration);
    if (!set.empty() || names.empty()) {
        SIEVE_ASSIGN(const std::string name, set_for_bans(configuration, set));
        names = {name};
    }
    std::vector<SetBans> all;
    for (const std::string& name : names) {
        SIEVE_ASSIGN(const Bans bans, of_ledger(BanLedger(configuration.state_directory, name).bans(now)));
        all.push_back({name, additions(bans)});
    }
    return all;
}

} // namespace sieve::service::live
