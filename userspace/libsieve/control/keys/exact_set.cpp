// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/exact_set.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/joint/leave_joint.hpp"
#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/control/keys/keys_left.hpp"
#include "libsieve/control/keys/rebuild_set.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::control {

namespace {

// From so many new keys on, and if they are a quarter of the set, it is built anew: that takes less time than
// to put them in one by one.
constexpr std::size_t many = std::size_t{1} << 16;

// To put keys in. The first one leaves the lock free while a larger table is built, so others may overtake
// it. The last one holds the lock, so that nobody can.
constexpr int attempts = 2;

constexpr int snapshots = 3;

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

std::optional<std::uint64_t> life_of(const KeyRequest& request) {
    if (!request.lifetime) return std::nullopt;
    return static_cast<std::uint64_t>(request.lifetime->count());
}

struct InPlace {
    KeysChanged changed{};
    KeySet left;                   // keys that the table does not take
    std::uint64_t later_ends = 0;  // members among them, which get another end
    std::uint64_t for_ends = 0;    // those of them that ask for an end that it cannot state
    std::optional<SeenSet> seen{}; // if there are any
};

// What attempts did that others overtook. Whoever replaced the set meanwhile may have kept the keys, as
// growth does, or not, so each attempt looks for all of them.
struct Earlier {
    std::vector<sieve_key> came{}; // that found room, ascending
    std::uint64_t expired = 0;

    [[nodiscard]] bool has(const sieve_key& key) const {
        return std::binary_search(came.begin(), came.end(), key, key_order);
    }
    void add(const KeySet& keys, const ChangeableTable& table) {
        keys.for_each(0, keys.size(), [&](const sieve_key& key) {
            if (table.contains(key)) came.push_back(key);
        });
        std::sort(came.begin(), came.end(), key_order);
    }
};

// The error of an attempt.
tl::unexpected<Error> error_after(const Earlier& earlier, Error why) {
    if (earlier.came.empty()) return tl::unexpected(std::move(why));
    return keys_left(KeysLeft::refused, why);
}

// Keys of a request, by what the table says of them.
struct Sorted {
    KeySet come_or_go;
    KeySet rebuilt;               // those whose end the table cannot state
    std::uint64_t later_ends = 0; // members among these
};

// Sorts the keys, and gives members that end already their later end, or none.
Result<Sorted> sort_out(const OpenTable& open, const Wanted& wanted, const KeyRequest& request,
                        const Earlier& earlier, KeysChanged& changed) {
    const std::uint32_t fields = open.filter->lookup().fields;
    Sorted sorted{.come_or_go = KeySet(fields), .rebuilt = KeySet(fields)};
    const bool erases = request.change == KeyChange::erase;
    const std::optional<std::uint64_t> life = life_of(request);
    const bool statable = !life || open.table->can_state(*life);
    const std::uint64_t end = life ? program_now() + *life : never_ends;
    for (const sieve_key& key : wanted.keys) {
        const std::optional<std::uint64_t> now = open.table->end_of(key);
        if (now.has_value() == erases) {
            (statable ? sorted.come_or_go : sorted.rebuilt).add(key);
        } else if (earlier.has(key) && *now == never_ends) {
            changed.report.done++;
        } else if (erases || *now == never_ends) {
            changed.report.told.push_back(key);
        } else if (end > *now && !statable) {
            sorted.rebuilt.add(key);
            sorted.later_ends += earlier.has(key) ? 0 : 1;
        } else {
            if (end > *now) {
                SIEVE_TRY(open.table->set_end(key, end));
                changed.other_end += earlier.has(key) ? 0 : 1;
            }
            changed.report.done++;
        }
    }
    return sorted;
}

// Whether so many keys are better built into a new table than put into this one, one by one.
bool is_to_be_rebuilt(const OpenTable& open, const KeySet& coming) {
    return (coming.size() >= many && coming.size() >= open.filter->file().keys / 4) ||
           !open.table->has_room_for(coming);
}

// The caller holds the lock.
Result<InPlace> change_in_place(Kernel& kernel, const HookName& name, const std::string& set,
                                const Wanted& wanted, std::uint32_t fields, const KeyRequest& request,
                                Earlier& earlier, const Safety& safety) {
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(const TableWithSet now, table_with(kernel, hook, set));
    SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(now.set.map_id));
    if (!lists_and_changes(header.lookup) || header.lookup.fields != fields)
        return failure(
            ErrorKind::changed_meanwhile,
            fmt::format("set {} was meanwhile replaced by one of another kind or with other fields, "
                        "which was left as it is",
                        set),
            {.interface = name.interface, .set = set});
    if (request.lifetime && !kind_of(header.lookup).exact()->states_ends(fields))
        return invalid_request(fmt::format(
            "set {}: keys of several fields do not end in an exact set; build the set with kind {}, whose "
            "keys can (`--kind {}`)",
            set, kind_name(SIEVE_KIND_DDLCBF), kind_name(SIEVE_KIND_DDLCBF)));
    if (request.lifetime && kind_of(header.lookup).exact()->has_marks(header.lookup))
        return invalid_request(
            fmt::format("set {} marks its hits, and entries that end are not marked: insert without an end, "
                        "or build the set without `hits`",
                        set));
    const bool erases = request.change == KeyChange::erase;
    SIEVE_TRY(refuse_lockout(
        kernel, hook,
        ComingKeys{.map_id = now.set.map_id, .fields = fields, .entries = wanted.keys, .erased = erases},
        safety));
    InPlace done{.left = KeySet(fields)};
    KeyChangeReport& report = done.changed.report;
    report.repeated = wanted.repeated;
    SIEVE_ASSIGN(const std::vector<ExpiredKeys> expired, expire_keys_at(kernel, hook));
    for (const ExpiredKeys& one : expired) earlier.expired += one.taken_out;
    SIEVE_ASSIGN(const OpenTable open, open_table(kernel, set, now.set.map_id));
    SIEVE_ASSIGN(Sorted sorted, sort_out(open, wanted, request, earlier, done.changed));
    report.keys = open.filter->file().keys;
    const std::uint64_t delay = open.table->delay_of_ends();
    if (request.lifetime && delay > tolerated_delay(*life_of(request)))
        done.changed.late = std::chrono::nanoseconds(delay);
    done.left = std::move(sorted.rebuilt);
    done.later_ends = sorted.later_ends;
    done.for_ends = done.left.size();
    const KeySet& todo = sorted.come_or_go;
    const auto finish = [&]() -> Result<InPlace> {
        done.changed.expired = earlier.expired;
        if (!done.left.empty()) {
            SIEVE_ASSIGN(done.seen, see_set(hook, now.set, open));
        }
        return std::move(done);
    };
    if (todo.empty()) return finish();
    const auto wait = [&] { return kernel.grace_period(); };
    if (!erases && is_to_be_rebuilt(open, todo)) {
        SIEVE_ASSIGN(const std::uint64_t swept, open.table->sweep(wait));
        earlier.expired += swept;
        if (swept == 0 || is_to_be_rebuilt(open, todo)) {
            done.left.append(todo);
            return finish();
        }
    }
    SIEVE_TRY(leave_joint(kernel, hook, now.set.map_id));
    const KeySet none(fields);
    const std::optional<std::uint64_t> life = life_of(request);
    SIEVE_ASSIGN(const TableChangeResult did,
                 open.table->change(erases ? todo : none, erases ? none : todo, wait,
                                    life ? program_now() + *life : never_ends));
    report.done += did.added + did.removed;
    report.keys = open.filter->file().keys;
    done.left.append(set_of(did.full, fields));
    if (!did.full.empty()) earlier.add(todo, *open.table);
    return finish();
}

} // namespace

Result<KeysChanged> change_exact_set(Kernel& kernel, const HookName& name, const std::string& set,
                                     const Members& members, const KeyRequest& request,
                                     const Observer& observer, const Safety& safety) {
    SIEVE_TRY(check_request(set, request));
    SIEVE_ASSIGN(const Wanted wanted, wanted_of(set, members));
    Earlier earlier;
    for (int attempt = 1; attempt <= attempts; attempt++) {
        auto lock = hold_lock(kernel, observer);
        if (!lock) return error_after(earlier, lock.error());
        auto done = change_in_place(kernel, name, set, wanted, members.fields(), request, earlier, safety);
        if (!done) return error_after(earlier, done.error());
        KeysChanged& changed = done->changed;
        if (done->left.empty()) return std::move(changed);
        if (attempt < attempts) lock->reset();
        auto rebuilt = rebuild_with(kernel, *done->seen, done->left, life_of(request), std::move(*lock),
                                    observer, safety);
        if (!rebuilt && changed.report.done == 0) return tl::unexpected(std::move(rebuilt.error()));
        if (!rebuilt) return keys_left(KeysLeft::cannot_grow, rebuilt.error());
        if (!*rebuilt) continue;
        changed.report.done += done->left.size();
        changed.report.keys = (*rebuilt)->keys;
        changed.late = std::chrono::nanoseconds((*rebuilt)->late);
        changed.other_end += done->later_ends;
        changed.grown = 1;
        changed.only_for_ends = done->left.size() == done->for_ends;
        return std::move(changed);
    }
    return error_after(
        earlier,
        Error{ErrorKind::changed_meanwhile,
              fmt::format("set {} was replaced, without the lock among controllers, while a larger table "
                          "was being built",
                          set),
              {.interface = name.interface, .set = set}});
}

EndingKeys count_ending(RunningFilter& filter) {
    EndingKeys count;
    if (!lists_and_changes(filter.lookup())) return count;
    const ExactKind& kind = *kind_of(filter.lookup()).exact();
    if (!kind.has_ends(filter.lookup(), filter.lines())) return count;
    const std::uint64_t now = program_now();
    // A fault is the entry that a writer is changing, or one that the next writer names.
    (void)kind.for_each_entry(filter.lookup(), filter.lines(), now,
                              [&](const sieve_key&, std::uint64_t end, bool) {
                                  count.ending += end > now && end != never_ends ? 1 : 0;
                                  count.ended += end <= now ? 1 : 0;
                              });
    return count;
}

Result<std::uint64_t> sweep_exact_set(Filters& kernel, const kernel::SetInForce& set) {
    SIEVE_ASSIGN(const OpenTable open, open_table(kernel, set.name, set.map_id));
    return open.table->sweep([&] { return kernel.grace_period(); });
}

Result<std::vector<ListedKey>> list_exact_set(Kernel& kernel, const std::string& name, std::uint32_t map_id) {
    SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(map_id));
    const ExactKind& kind = *kind_of(filter->lookup()).exact();
    const std::span<sieve_line> lines = filter->lines();
    const auto changes = [&] {
        return std::atomic_ref<__u64>(filter->file().changes).load(std::memory_order_acquire);
    };
    HugeArray<sieve_line> copy(lines.size());
    std::vector<ListedKey> members;
    const std::uint64_t now = program_now();
    const VisitEntry add = [&](const sieve_key& key, std::uint64_t end, bool hit) {
        if (end <= now) return;
        members.push_back({.key = key, .hit = hit});
        if (end != never_ends) members.back().ends_in = static_cast<std::int64_t>(end - now);
    };
    for (int i = 0; i < snapshots; i++) {
        SIEVE_ASSIGN(const std::unique_ptr<ChangeableTable> table,
                     kind.open_table(filter->lookup(), filter->file(), lines));
        const std::uint64_t before = changes();
        if (table->unsettled()) continue;
        std::copy(lines.begin(), lines.end(), copy.begin());
        std::atomic_thread_fence(std::memory_order_acquire);
        if (table->unsettled() || changes() != before) continue;
        SIEVE_TRY(kind.for_each_entry(filter->lookup(), {copy.data(), copy.size()}, now, add));
        return members;
    }
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, {}));
    SIEVE_ASSIGN(const OpenTable open, open_table(kernel, name, map_id));
    SIEVE_TRY(open.for_each_entry(now, add));
    return members;
}

} // namespace sieve::control
