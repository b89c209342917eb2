// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/exact_set.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sieve/inserted.h>

#include "libsieve/control/changeable_set.hpp"
#include "libsieve/control/expire_keys.hpp"
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
    return {};
}

// Single keys, each once, in the order in which they are given.
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
    if (!members.key_ranges.empty())
        return bad_input(fmt::format(
            "set {} is of kind exact, which holds single keys, no prefixes, ranges or open fields", set));
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

// The ends of a set's keys. Whether a key is a member, the table says: so a note of a key that is none is
// what a controller left that died, and means nothing.
class Ends {
  public:
    // `inserted`: null if no key was ever inserted for a time. `end`: of keys that come, as in KeyNote.
    Ends(std::unique_ptr<RunningKeys> inserted, std::uint64_t end)
        : inserted_(std::move(inserted)), end_(end) {}

    // Of a member that is inserted once more. False: nothing has changed.
    Result<bool> change(const sieve_key& member) {
        SIEVE_ASSIGN(const std::optional<kernel::KeyNote> note, find(member));
        if (!note) return false;
        if (end_ == 0) {
            SIEVE_TRY(inserted_->erase(member));
            return true;
        }
        return inserted_->put(member, {.end = std::max(note->end, end_), .state = SIEVE_INSERTED_IN});
    }
    // Before a key comes: one that is in may not lack its end. False: there is no room for it.
    Result<bool> note(const sieve_key& key) {
        if (end_ != 0) return inserted_->put(key, {.end = end_, .state = SIEVE_INSERTED_IN});
        SIEVE_TRY(forget(key));
        return true;
    }
    // After a key went.
    Status forget(const sieve_key& key) { return inserted_ ? inserted_->erase(key) : Status(); }

  private:
    Result<std::optional<kernel::KeyNote>> find(const sieve_key& key) {
        if (!inserted_) return std::nullopt;
        return inserted_->find(key);
    }

    std::unique_ptr<RunningKeys> inserted_;
    std::uint64_t end_;
};

Result<Ends> ends_of(Kernel& kernel, const kernel::SetInForce& set, std::uint64_t end) {
    if (set.inserted_id == 0) return Ends(nullptr, end);
    SIEVE_ASSIGN(std::unique_ptr<RunningKeys> inserted, kernel.open_inserted(set.inserted_id));
    return Ends(std::move(inserted), end);
}

// Calls work(key) for each until one fails.
template <class Work>
Status each(const KeySet& keys, const Work& work) {
    Status done;
    for (std::size_t i = 0; i < keys.size() && done; i++) done = work(keys.at(i));
    return done;
}

// The keys that have to come or go. Notes the ends of those that come, and changes those of members.
Result<KeySet> sort_out(const OpenTable& open, const Wanted& wanted, bool erases, Ends& ends,
                        KeysChanged& changed) {
    KeySet todo(open.filter->lookup().fields);
    for (const sieve_key& key : wanted.keys) {
        if (open.table->contains(key) == erases) {
            SIEVE_ASSIGN(const bool noted, erases ? Result<bool>(true) : ends.note(key));
            if (noted)
                todo.add(key);
            else
                changed.report.full.push_back(key);
            continue;
        }
        SIEVE_ASSIGN(const bool other_end, erases ? Result<bool>(false) : ends.change(key));
        if (!other_end) {
            changed.report.told.push_back(key);
            continue;
        }
        changed.other_end++;
        changed.report.done++;
    }
    return todo;
}

Result<InPlace> change_in_place(Kernel& kernel, const HookName& name, const std::string& set,
                                const Wanted& wanted, std::uint32_t fields, const KeyRequest& request,
                                const Observer& observer, const Safety& safety) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(now.set.map_id));
    if (!lists_and_changes(header.lookup) || header.lookup.fields != fields)
        return failure(
            ErrorKind::changed_meanwhile,
            fmt::format("set {} was meanwhile replaced by one of another kind or with other fields; "
                        "nothing was changed",
                        set),
            {.interface = name.interface, .set = set});
    const bool erases = request.change == KeyChange::erase;
    const kernel::TableInForce table = kernel.read_table(hook);
    SIEVE_TRY(refuse_lockout(
        kernel, name.interface, hook.point,
        ComingKeys{.table = table, .set = set, .fields = fields, .entries = wanted.keys, .erased = erases},
        safety));
    InPlace done{.left = KeySet(fields)};
    KeyChangeReport& report = done.changed.report;
    report.repeated = wanted.repeated;
    SIEVE_ASSIGN(const std::vector<ExpiredKeys> expired, expire_keys_at(kernel, hook));
    for (const ExpiredKeys& one : expired) done.changed.expired += one.taken_out;
    std::uint64_t end = 0;
    if (request.lifetime) {
        SIEVE_ASSIGN(now, with_room_for_ends(kernel, hook, std::move(now), wanted.keys.size()));
        end = kernel.boot_time() + static_cast<std::uint64_t>(request.lifetime->count());
    }
    SIEVE_ASSIGN(Ends ends, ends_of(kernel, now.set, end));
    SIEVE_ASSIGN(const OpenTable open, open_table(kernel, set, now.set.map_id));
    SIEVE_ASSIGN(KeySet todo, sort_out(open, wanted, erases, ends, done.changed));
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
    report.done += did.added + did.removed;
    report.keys = open.filter->file().keys;
    if (erases) {
        const Status forgotten = each(todo, [&](const sieve_key& key) { return ends.forget(key); });
        if (!forgotten)
            return unfinished("the keys are deleted, but some of their ends are still noted",
                              forgotten.error());
    }
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
    SIEVE_ASSIGN(InPlace done,
                 change_in_place(kernel, name, set, wanted, members.fields(), request, observer, safety));
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

Result<std::uint64_t> expire_exact_set(Kernel& kernel, const kernel::Hook& hook,
                                       const kernel::SetInForce& set,
                                       std::span<const kernel::NotedKey> overdue) {
    SIEVE_ASSIGN(const OpenTable open, open_table(kernel, set.name, set.map_id));
    SIEVE_ASSIGN(Ends ends, ends_of(kernel, set, 0));
    const std::uint32_t fields = open.filter->lookup().fields;
    KeySet gone(fields);
    for (const kernel::NotedKey& one : overdue)
        if (open.table->contains(one.key)) gone.add(one.key);
    if (!gone.empty()) SIEVE_TRY(leave_joint(kernel, hook, set.name));
    SIEVE_ASSIGN(const TableChange did,
                 open.table->change(gone, KeySet(fields), [&] { return kernel.grace_period(); }));
    for (const kernel::NotedKey& one : overdue) SIEVE_TRY(ends.forget(one.key));
    return did.removed;
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
