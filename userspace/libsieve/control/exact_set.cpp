// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/exact_set.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/control/hold_lock.hpp"
#include "libsieve/control/leave_joint.hpp"
#include "libsieve/control/lockout.hpp"
#include "libsieve/control/rebuild_set.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/huge_array.hpp"
#include "libsieve/util/unfinished.hpp"

namespace sieve::control {

namespace {

// From so many new keys on, and if they are a quarter of the set, it is built anew: that takes less time than
// to put them in one by one.
constexpr std::size_t many = std::size_t{1} << 16;

constexpr int snapshots = 3;

tl::unexpected<Error> not_intact(const std::string& name, const Error& fault) {
    return kernel_refused(
        fmt::format("the table of set {} is damaged ({}); swap in a new one", name, fault.message));
}

Status check_request(const std::string& set, const KeyRequest& request) {
    if (request.change == KeyChange::insert_again)
        return invalid_request(
            fmt::format("set {} is exact, so a key is in it once, and none is a member by mistake", set));
    if (request.lifetime)
        return invalid_request(fmt::format("set {} is exact, and its keys have no end", set));
    return {};
}

// Single addresses, each once, in the order in which they are given.
struct Wanted {
    std::vector<sieve_key> keys{};
    std::uint64_t repeated = 0;
};

Result<Wanted> wanted_of(const std::string& set, const Members& members) {
    KeySet all = members.keys;
    for (const AddressRange& range : members.ranges) {
        if (range.first != range.last)
            return bad_input(fmt::format(
                "set {} is of kind exact, which holds single addresses, no prefixes or ranges", set));
        sieve_key key{};
        const int word = sieve_address_word(members.fields());
        key.word[word] = static_cast<std::uint64_t>(range.first >> 64);
        key.word[word + 1] = static_cast<std::uint64_t>(range.first);
        all.add(key);
    }
    std::vector<std::pair<sieve_key, std::size_t>> order;
    order.reserve(all.size());
    all.for_each(0, all.size(), [&](const sieve_key& key) { order.emplace_back(key, order.size()); });
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return key_order(a.first, b.first); });
    order.erase(std::unique(order.begin(), order.end(),
                            [](const auto& a, const auto& b) { return same_key(a.first, b.first); }),
                order.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    Wanted wanted;
    wanted.repeated = all.size() - order.size();
    wanted.keys.reserve(order.size());
    for (const auto& [key, at] : order) wanted.keys.push_back(key);
    return wanted;
}

KeySet set_of(std::span<const sieve_key> keys, std::uint32_t fields) {
    KeySet set(fields);
    for (const sieve_key& key : keys) set.add(key);
    return set;
}

struct InPlace {
    KeysChanged changed{};
    KeySet left; // new keys that the table does not take
};

Result<InPlace> change_in_place(Kernel& kernel, const HookName& name, const std::string& set,
                                const Wanted& wanted, std::uint32_t fields, KeyChange change,
                                const Observer& observer, const Safety& safety) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(const TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(now.set.map_id));
    if (!lists_and_changes(header.lookup) || header.lookup.fields != fields)
        return failure(
            ErrorKind::changed_meanwhile,
            fmt::format("set {} was meanwhile replaced by one of another kind or with other fields; "
                        "nothing was changed",
                        set),
            {.interface = name.interface, .set = set});
    const bool erases = change == KeyChange::erase;
    const kernel::TableInForce table = kernel.read_table(hook);
    SIEVE_TRY(refuse_lockout(
        kernel, name.interface, hook.point,
        ComingKeys{.table = table, .set = set, .fields = fields, .entries = wanted.keys, .erased = erases},
        safety));
    SIEVE_ASSIGN(const OpenTable open, open_table(kernel, set, now.set.map_id));
    InPlace done{.left = KeySet(fields)};
    KeyChangeReport& report = done.changed.report;
    report.repeated = wanted.repeated;
    KeySet todo(fields);
    for (const sieve_key& key : wanted.keys) {
        if (open.table->contains(key) == erases)
            todo.add(key);
        else
            report.told.push_back(key);
    }
    report.keys = open.filter->file().keys;
    if (todo.empty()) return done;
    const KeySet none(fields);
    if (!erases &&
        ((todo.size() >= many && todo.size() >= report.keys / 4) || !open.table->has_room_for(todo))) {
        done.left = std::move(todo);
        return done;
    }
    SIEVE_TRY(leave_joint(kernel, hook, set));
    SIEVE_ASSIGN(const TableChange did, open.table->change(erases ? todo : none, erases ? none : todo,
                                                           [&] { return kernel.grace_period(); }));
    report.done = did.added + did.removed;
    report.keys = open.filter->file().keys;
    done.left = set_of(did.full, fields);
    return done;
}

} // namespace

bool lists_and_changes(const sieve_lookup& lookup) {
    const FilterKind& kind = kind_of(lookup);
    return kind.exact() != nullptr && kind.facts().changes_live;
}

Result<KeySet> OpenTable::list() const {
    return kind_of(filter->lookup()).exact()->list(filter->lookup(), filter->lines());
}

Result<OpenTable> open_table(Kernel& kernel, const std::string& name, std::uint32_t map_id) {
    OpenTable open;
    SIEVE_ASSIGN(open.filter, kernel.open_filter(map_id));
    RunningFilter& filter = *open.filter;
    auto table = kind_of(filter.lookup()).exact()->open_table(filter.lookup(), filter.file(), filter.lines());
    if (!table) return not_intact(name, table.error());
    open.table = std::move(*table);
    if (!open.table->unsettled()) return open;
    const Status settled = open.table->settle([&] { return kernel.grace_period(); });
    if (!settled && settled.error().kind == ErrorKind::bad_input) return not_intact(name, settled.error());
    SIEVE_TRY(settled);
    return open;
}

Result<KeysChanged> change_exact_set(Kernel& kernel, const HookName& name, const std::string& set,
                                     const Members& members, const KeyRequest& request,
                                     const Observer& observer, const Safety& safety) {
    SIEVE_TRY(check_request(set, request));
    SIEVE_ASSIGN(const Wanted wanted, wanted_of(set, members));
    SIEVE_ASSIGN(InPlace done, change_in_place(kernel, name, set, wanted, members.fields(), request.change,
                                               observer, safety));
    KeysChanged& changed = done.changed;
    if (done.left.empty()) return std::move(changed);
    auto rebuilt = rebuild_with(kernel, name, set, done.left, observer);
    if (!rebuilt && changed.report.done == 0) return tl::unexpected(std::move(rebuilt.error()));
    if (!rebuilt) return unfinished("the keys that fit are in, but the set could not grow", rebuilt.error());
    changed.report.done += done.left.size();
    changed.report.keys = rebuilt->keys;
    changed.grown = 1;
    return std::move(changed);
}

Result<KeySet> list_exact_set(Kernel& kernel, const std::string& name, std::uint32_t map_id) {
    SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(map_id));
    const ExactKind& kind = *kind_of(filter->lookup()).exact();
    const std::span<sieve_line> lines = filter->lines();
    const auto changes = [&] {
        return std::atomic_ref<__u64>(filter->file().changes).load(std::memory_order_acquire);
    };
    HugeArray<sieve_line> copy(lines.size());
    for (int i = 0; i < snapshots; i++) {
        SIEVE_ASSIGN(const std::unique_ptr<ChangeableTable> table,
                     kind.open_table(filter->lookup(), filter->file(), lines));
        const std::uint64_t before = changes();
        if (table->unsettled()) continue;
        std::copy(lines.begin(), lines.end(), copy.begin());
        std::atomic_thread_fence(std::memory_order_acquire);
        if (!table->unsettled() && changes() == before)
            return kind.list(filter->lookup(), {copy.data(), copy.size()});
    }
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, {}));
    SIEVE_ASSIGN(const OpenTable open, open_table(kernel, name, map_id));
    return open.list();
}

} // namespace sieve::control
