// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/live_filters.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/joint/leave_joint.hpp"
#include "libsieve/control/keys/exact_set.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::control {

namespace {

// More keys than this are not put one by one into a table that has no room for all of them.
constexpr std::size_t many = std::size_t{1} << 16;

// Whether a table that grows from so many keys to so many is to be looked at. A look may go over all of its
// lines, and the last hundredth of the room is some steps long.
bool passes_a_step(std::uint64_t before, std::uint64_t after) {
    const std::uint64_t step = std::max<std::uint64_t>(64, before / 256);
    return before / step < after / step;
}

struct OpenFilter {
    LiveFilter facts;
    OpenTable table{};                        // of a filter that can change
    std::vector<const kernel::Hook*> hooks{}; // that have it
};

Result<OpenFilter> open_filter(Filters& kernel, const std::string& set, std::uint32_t map_id, bool verified) {
    SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(map_id));
    OpenFilter open{.facts = {.map_id = map_id, .fields = header.lookup.fields}};
    open.facts.changeable =
        lists_and_changes(header.lookup) && sieve_is_one_address(header.lookup.fields) != 0 && !verified;
    if (open.facts.changeable) {
        SIEVE_ASSIGN(open.table, open_table(kernel, set, map_id)); // a change that was cut off is settled
        open.facts.changes = open.table.filter->file().changes;
    }
    return open;
}

// What is left to do for a table.
class Left {
  public:
    explicit Left(const OpenTable& open) : open_(open), keys_(open.filter->lookup().fields) {}

    void remove(const sieve_key& key) {
        if (open_.table->contains(key)) keys_.removed.add(key);
    }
    void add(const sieve_key& key) {
        const std::optional<std::uint64_t> end = open_.table->end_of(key);
        if (!end)
            keys_.added.add(key);
        else if (*end != never_ends && done_)
            done_ = open_.table->set_end(key, never_ends);
    }
    [[nodiscard]] Result<KeyDifference> take() {
        SIEVE_TRY(done_);
        return std::move(keys_);
    }

  private:
    const OpenTable& open_;
    KeyDifference keys_;
    Status done_;
};

Result<KeyDifference> left_of(const OpenTable& open, const FilterDue& due) {
    Left left(open);
    if (due.difference != nullptr) {
        const auto& [removed, added] = *due.difference;
        removed.for_each(0, removed.size(), [&](const sieve_key& key) { left.remove(key); });
        added.for_each(0, added.size(), [&](const sieve_key& key) { left.add(key); });
    } else {
        SIEVE_TRY(open.for_each_entry(program_now(), [&](const sieve_key& key, std::uint64_t, bool) {
            if (!due.list->contains(key)) left.remove(key);
        }));
        due.list->for_each([&](const sieve_key& key) { left.add(key); });
    }
    return left.take();
}

Result<FilterChanged> change_filter(Kernel& kernel, OpenFilter& open, const std::string& set,
                                    const DueFor& due_for) {
    FilterChanged changed{.filter = open.facts};
    const FilterDue due = due_for(open.facts);
    if (due.difference == nullptr && due.list == nullptr) return changed;
    if (!open.facts.changeable)
        return invalid_request(
            fmt::format("set {}: its filter on {} cannot take single keys", set, open.facts.hook.interface));
    changed.touched = true;
    SIEVE_ASSIGN(KeyDifference left, left_of(open.table, due));
    if (left.added.size() > many && !open.table.table->has_room_for(left.added)) {
        changed.no_room = left.added.size();
        left.added = KeySet(open.facts.fields);
    }
    if (left.empty()) return changed;
    for (const kernel::Hook* hook : open.hooks) SIEVE_TRY(leave_joint(kernel, *hook, open.facts.map_id));
    const std::uint64_t before = open.table.filter->file().keys;
    SIEVE_ASSIGN(const TableChangeResult did,
                 open.table.table->change(left.removed, left.added, [&] { return kernel.grace_period(); }));
    changed.done = did.removed + did.added;
    changed.no_room += did.full.size();
    changed.little_room =
        passes_a_step(before, open.table.filter->file().keys) && !open.table.table->has_room_for(left.added);
    changed.filter.changes = open.facts.changes = open.table.filter->file().changes;
    return changed;
}

} // namespace

struct LiveFilters::Parts {
    Held lock;
    Kernel& kernel;
    std::string set;
    std::vector<kernel::Hook> hooks{}; // all of them
    std::vector<OpenFilter> filters{};

    [[nodiscard]] Status add(const kernel::Hook& hook, const kernel::TableInForce& table, bool in_force);
};

LiveFilters::LiveFilters(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LiveFilters::LiveFilters(LiveFilters&&) noexcept = default;
LiveFilters& LiveFilters::operator=(LiveFilters&&) noexcept = default;
LiveFilters::~LiveFilters() = default;

Result<LiveFilters> LiveFilters::hold(Kernel& kernel, std::string set, const Observer& observer) {
    SIEVE_ASSIGN(Held lock, hold_lock(kernel, observer));
    auto parts =
        std::make_unique<Parts>(Parts{.lock = std::move(lock), .kernel = kernel, .set = std::move(set)});
    SIEVE_ASSIGN(parts->hooks, hooks_of(kernel, {}));
    for (const kernel::Hook& hook : parts->hooks) {
        if (!hook.speaks_our_version()) continue;
        const std::optional<kernel::TableInForce> returning = kernel.read_returning(hook);
        SIEVE_TRY(parts->add(hook, kernel.read_table(hook), true));
        if (returning) SIEVE_TRY(parts->add(hook, *returning, false));
    }
    return LiveFilters(std::move(parts));
}

Status LiveFilters::Parts::add(const kernel::Hook& hook, const kernel::TableInForce& table, bool in_force) {
    const kernel::SetInForce* found = table.find(set);
    if (found == nullptr) return {};
    // Two hooks may share a map, and so may both tables of a hook.
    auto open = std::ranges::find_if(
        filters, [&](const OpenFilter& other) { return other.facts.map_id == found->map_id; });
    if (open == filters.end()) {
        SIEVE_ASSIGN(OpenFilter other, open_filter(kernel, set, found->map_id, found->exact_id != 0));
        other.facts.hook = {.interface = hook.interface.name, .point = hook.point};
        open = filters.insert(filters.end(), std::move(other));
    }
    open->facts.in_force = open->facts.in_force || in_force;
    if (open->hooks.empty() || open->hooks.back() != &hook) open->hooks.push_back(&hook);
    return {};
}

Result<std::vector<FilterChanged>> LiveFilters::change(const DueFor& due_for) {
    std::vector<FilterChanged> done;
    bool any = false;
    for (OpenFilter& open : parts_->filters) {
        Result<FilterChanged> changed = change_filter(parts_->kernel, open, parts_->set, due_for);
        if (!changed && !any) return tl::unexpected(std::move(changed.error()));
        if (!changed) return unfinished("some filters have the change, not all", changed.error());
        any = any || changed->touched;
        done.push_back(std::move(*changed));
    }
    return done;
}

Result<FilterChanged> change_coming_filter(Kernel& kernel, const std::string& set, std::uint32_t map_id,
                                           const DueFor& due_for) {
    SIEVE_ASSIGN(OpenFilter open, open_filter(kernel, set, map_id, false));
    return change_filter(kernel, open, set, due_for);
}

} // namespace sieve::control
