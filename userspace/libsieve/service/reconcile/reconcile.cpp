// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/reconcile.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/table/apply.hpp"
#include "libsieve/control/table/prepare.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/control/table/unload.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/reconcile/refresh.hpp"
#include "libsieve/service/safety/entry_safety.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/sources/sandbox.hpp"

namespace sieve::service {

namespace {

// What sets without an action go by: the configured default, which may have to wait for a list. One that is
// held back would make friends of foes.
sieve_action default_of_sets(const HookPlan& plan) {
    return plan.holds_table() ? plan.default_action : plan.entry->default_action;
}

// The table of these sets as control takes it, without sources.
control::TableSpec table_of(const Configuration& configuration, const HookPlan& plan,
                            const std::vector<std::string>& sets) {
    const InterfaceConfiguration& entry = *plan.entry;
    control::TableSpec table;
    table.interface = plan.interface;
    table.point = entry.hook;
    table.default_action = plan.default_action;
    table.unreadable = plan.unreadable;
    table.replies = plan.holds_table() && plan.step == HookStep::change ? plan.replies : entry.replies;
    table.flows = {.most = entry.max_flows, .if_new = true};
    table.replace = true;
    table.mode = entry.mode;
    table.priority = entry.priority;
    table.chain = entry.chain;
    for (const std::string& name : sets) {
        control::SetSpec set;
        set.name = name;
        if (const SetConfiguration* found = configuration.find_set(name)) {
            set.action = found->action;
            set.keeps_replies_out = found->keeps_replies_out;
            set.condition = found->condition;
        }
        if (!set.action) set.action = {.action = control::natural_action(default_of_sets(plan)).action};
        table.sets.push_back(std::move(set));
    }
    return table;
}

bool is_verified(const Configuration& configuration, const std::string& set) {
    const SetConfiguration* found = configuration.find_set(set);
    return found != nullptr && found->verify;
}

// The identity of the filter in that map; empty if it cannot be read.
std::string identity_in_force(control::Kernel& kernel, std::uint32_t map_id) {
    const auto filter = kernel.read_filter(map_id);
    return filter ? identity_text(filter->file) : std::string();
}

tl::unexpected<Error> attached_otherwise(const kernel::Hook& hook, const std::string& is,
                                         const std::string& wanted) {
    return failure(
        ErrorKind::attached_otherwise,
        fmt::format("{}: xdp-sieve runs there {}, and {} is configured", hook.interface.name, is, wanted),
        {.interface = hook.interface.name});
}

// What was settled when our program was attached, and cannot be changed while it runs.
Status check_attached(const kernel::Hook& hook, const InterfaceConfiguration& entry) {
    const bool xdp = hook.point == kernel::HookPoint::xdp;
    if (xdp && entry.mode == kernel::ModeChoice::native && hook.mode != kernel::Mode::native)
        return attached_otherwise(hook, fmt::format("in {} mode", kernel::mode_name(hook.mode)), "native");
    if (xdp && entry.mode == kernel::ModeChoice::skb && hook.mode != kernel::Mode::skb)
        return attached_otherwise(hook, fmt::format("in {} mode", kernel::mode_name(hook.mode)), "skb");
    const auto other_priority = [&](std::uint32_t is) -> Status {
        if (!entry.priority || *entry.priority == is) return {};
        return attached_otherwise(hook, fmt::format("with priority {}", is),
                                  fmt::format("priority {}", *entry.priority));
    };
    if (const kernel::TcFilter* filter = hook.filter(); filter != nullptr)
        return other_priority(filter->priority);
    const std::optional<kernel::DispatcherRank> rank = hook.behind_dispatcher() ? hook.rank() : std::nullopt;
    if (!rank) return {}; // alone, there is no rank
    SIEVE_TRY(other_priority(rank->priority));
    if (entry.chain && *entry.chain != rank->chain)
        return attached_otherwise(hook, fmt::format("with chain {}", kernel::chain_text(rank->chain)),
                                  fmt::format("chain {}", kernel::chain_text(*entry.chain)));
    return {};
}

// The names of `names` that are among the others.
template <class Contains>
std::vector<std::string> common(const std::vector<std::string>& names, const Contains& contains) {
    std::vector<std::string> out;
    std::copy_if(names.begin(), names.end(), std::back_inserter(out), contains);
    return out;
}

class HookPlanner {
  public:
    HookPlanner(control::Kernel& kernel, const Configuration& configuration, const WantedVersions& wanted,
                HookPlan& plan)
        : kernel_(kernel), configuration_(configuration), wanted_(wanted), plan_(plan) {}

    Status run(const kernel::Interface& interface) {
        const InterfaceConfiguration& entry = *plan_.entry;
        SIEVE_ASSIGN(const kernel::Hook hook, kernel_.read_hook(interface, entry.hook));
        SIEVE_TRY(kernel::may_attach(hook, false));
        if (hook.ours) SIEVE_TRY(kernel::refuse_unless_ours(hook));
        std::optional<kernel::TableInForce> now;
        if (hook.ours) now = kernel_.read_table(hook);
        plan_.default_action = entry.default_action;
        plan_.unreadable = entry.unreadable;
        if (now && now->default_action == SIEVE_ACTION_DROP && entry.default_action != SIEVE_ACTION_DROP &&
            !plan_.holds_table() && is_default_awaited_elsewhere(interface)) {
            plan_.default_action = SIEVE_ACTION_DROP;
            plan_.default_moves = true;
        }
        if (plan_.holds_table()) {
            plan_.default_action = now ? now->default_action : SIEVE_ACTION_PASS;
            if (now) plan_.unreadable = now->unreadable;
        }
        control::TableSpec table = table_of(configuration_, plan_, entry.sets);
        for (const control::SetSpec& set : table.sets) find_action(set);
        hold_exchanged();
        if (now) find_former(*now);
        find_waiting(now ? &*now : nullptr);
        table.default_action = plan_.default_action;
        if (!now) {
            if (!entry.sets.empty() && plan_.waiting.size() == entry.sets.size() &&
                plan_.default_action == SIEVE_ACTION_PASS)
                return nothing_yet();
            plan_.step = HookStep::attach;
            plan_.replies = control::replies_of(table, nullptr);
            for (std::size_t i = 0; i < entry.sets.size(); i++)
                if (!plan_.waits(entry.sets[i])) add_coming(i);
            return {};
        }
        plan_.program_id = hook.ours->id;
        if (Status attached = check_attached(hook, entry); !attached)
            plan_.otherwise = std::move(attached.error());
        if (plan_.holds_table()) table.replies = now->replies;
        SIEVE_TRY(compare_replies(hook, *now, table));
        compare(interface, *now);
        return {};
    }

  private:
    // Of other hooks of the interface that the configuration names, for packets of the same direction: what
    // is to be in force there, and what is; null: nothing, as far as is known.
    template <class Asks>
    [[nodiscard]] bool any_elsewhere(const kernel::Interface& interface, const Asks& asks) const {
        return std::ranges::any_of(kernel::all_hook_points, [&](kernel::HookPoint point) {
            const InterfaceConfiguration* entry = entry_for(configuration_, interface.name, point);
            if (entry == nullptr || point == plan_.point) return false;
            if ((point == kernel::HookPoint::egress) != (plan_.point == kernel::HookPoint::egress))
                return false;
            const auto hook = kernel_.read_hook(interface, point);
            if (!hook || !hook->ours || !hook->speaks_our_version()) return asks(*entry, nullptr);
            const kernel::TableInForce now = kernel_.read_table(*hook);
            return asks(*entry, &now);
        });
    }
    [[nodiscard]] bool is_default_awaited_elsewhere(const kernel::Interface& interface) const {
        return any_elsewhere(interface,
                             [](const InterfaceConfiguration& entry, const kernel::TableInForce* now) {
                                 return entry.default_action == SIEVE_ACTION_DROP &&
                                        (now == nullptr || now->default_action != SIEVE_ACTION_DROP);
                             });
    }
    // The set itself or one that replaces it, and none that replaces it here.
    [[nodiscard]] bool is_awaited_elsewhere(const kernel::Interface& interface,
                                            const std::string& name) const {
        const auto replaces = [&](const std::string& set) {
            const auto wanted = wanted_.find(set);
            return wanted != wanted_.end() && wanted->second.replaces.contains(name);
        };
        return std::ranges::none_of(plan_.entry->sets, replaces) &&
               any_elsewhere(interface,
                             [&](const InterfaceConfiguration& entry, const kernel::TableInForce* now) {
                                 return std::ranges::any_of(entry.sets, [&](const std::string& set) {
                                     if (set != name && !replaces(set)) return false;
                                     return now == nullptr || now->find(set) == nullptr ||
                                            (set != name && wanted_.at(set).lacks.contains(name));
                                 });
                             });
    }

    void find_action(const control::SetSpec& set) {
        const sieve_action default_action = default_of_sets(plan_);
        auto found = control::find_actions(kernel_, {&set, 1}, default_action);
        if (found) return actions_.push_back(found->front());
        plan_.held.try_emplace(set.name, std::move(found.error()));
        actions_.push_back(set.action ? control::SetAction{set.action->action}
                                      : control::natural_action(default_action));
    }
    [[nodiscard]] bool is_held(const std::string& name) const { return plan_.held.contains(name); }
    // Of sets that exchange their lists, all change or none: one's list would be nowhere.
    void hold_exchanged() {
        const auto replaces = [&](const std::string& set, const std::string& other) {
            const auto wanted = wanted_.find(set);
            return wanted != wanted_.end() && wanted->second.replaces.contains(other);
        };
        const std::vector<std::string>& names = plan_.entry->sets;
        for (bool more = true; std::exchange(more, false);)
            for (const std::string& one : names)
                for (const std::string& other : names)
                    if (is_held(other) && !is_held(one) && (replaces(one, other) || replaces(other, one))) {
                        plan_.held.emplace(one, plan_.held.at(other));
                        more = true;
                    }
    }

    // Sets that have another name, other sources and another action at once: under the former name, the list
    // and the action are in force that they keep until their sources have said their lists.
    void find_former(const kernel::TableInForce& now) {
        const std::vector<std::string>& names = plan_.entry->sets;
        for (const std::string& name : names) {
            const auto wanted = wanted_.find(name);
            if (wanted == wanted_.end() || !wanted->second.action_waits || now.find(name) != nullptr)
                continue;
            for (const kernel::SetInForce& set : now.sets)
                if (std::ranges::find(names, set.name) == names.end() &&
                    identity_in_force(kernel_, set.map_id) == wanted->second.identity)
                    former_.emplace(name, control::action_of(set));
        }
    }

    // A set that waits can make others wait, whichever side of it they are on.
    void find_waiting(const kernel::TableInForce* now) {
        const std::vector<std::string>& names = plan_.entry->sets;
        const auto is_in_force = [&](std::size_t i) { return now != nullptr && now->find(names[i]); };
        const auto is_together = [&](std::size_t i) {
            const auto set = wanted_.find(names[i]);
            return set != wanted_.end() && set->second.together;
        };
        // It is to pass, and does not yet.
        const auto awaits_friends = [&](std::size_t i) {
            if (const auto former = former_.find(names[i]); former != former_.end())
                return former->second.action != SIEVE_ACTION_PASS && passes(i);
            const kernel::SetInForce* set = now != nullptr ? now->find(names[i]) : nullptr;
            const auto wanted = wanted_.find(names[i]);
            return set != nullptr && set->action != SIEVE_ACTION_PASS && passes(i) &&
                   (is_held(names[i]) || (wanted != wanted_.end() && wanted->second.of_other_sources));
        };
        std::vector<std::optional<WaitingSet>> waiting(names.size());
        // The first set that keeps this one out.
        const auto keeper_of = [&](std::size_t i) -> std::optional<std::size_t> {
            for (std::size_t k = 0; k < names.size(); k++)
                if (((waiting[k] || awaits_friends(k)) && k < i && passes(k) &&
                     control::takes_packets(actions_[i].action)) ||
                    (waiting[k] && is_together(i) && is_together(k)))
                    return k;
            return std::nullopt;
        };
        for (std::size_t i = 0; i < names.size(); i++) {
            if (is_in_force(i)) continue;
            if (!has_image(names[i]) && !former_.contains(names[i]))
                waiting[i] = WaitingSet{names[i], {}, {}};
            else if (is_held(names[i]))
                waiting[i] = WaitingSet{names[i], {}, plan_.held.at(names[i]).message};
        }
        for (bool more = true; more;) {
            more = false;
            for (std::size_t i = 0; i < names.size(); i++) {
                if (waiting[i] || is_in_force(i)) continue;
                if (const auto keeper = keeper_of(i)) {
                    waiting[i] = WaitingSet{names[i], names[*keeper], {}};
                    more = true;
                }
            }
        }
        for (std::size_t i = 0; i < names.size(); i++) {
            if (waiting[i]) plan_.waiting.push_back(*waiting[i]);
            if (!(waiting[i] ? passes(i) : awaits_friends(i))) continue;
            if (now == nullptr || now->default_action != SIEVE_ACTION_DROP)
                plan_.default_action = SIEVE_ACTION_PASS;
            if (!first_friend_) first_friend_ = i;
        }
    }

    [[nodiscard]] bool passes(std::size_t i) const { return actions_[i].action == SIEVE_ACTION_PASS; }
    [[nodiscard]] bool has_image(const std::string& name) const {
        const auto set = wanted_.find(name);
        return set != wanted_.end() && set->second.has_image() && !set->second.action_waits;
    }

    [[nodiscard]] Status nothing_yet() const {
        std::vector<std::string> texts;
        for (const WaitingSet& set : plan_.waiting) texts.push_back(waiting_text(set));
        return bad_input(fmt::format("{} {}: no set can be in force yet: {}", plan_.interface,
                                     kernel::hook_point_name(plan_.point), fmt::join(texts, "; ")));
    }

    void add_coming(std::size_t i) {
        const std::string& name = plan_.entry->sets[i];
        const auto former = former_.find(name);
        plan_.sets.push_back({.name = name,
                              .comes = true,
                              .action = former != former_.end() ? former->second : actions_[i],
                              .verified = is_verified(configuration_, name) && is_verifiable(name)});
    }

    // The last good image has no keys if verification was switched on after it had been built. Its filter
    // alone misses no member, and it goes without them until the list has been read.
    [[nodiscard]] bool is_verifiable(const std::string& name) const {
        const auto set = wanted_.find(name);
        return set == wanted_.end() || set->second.verifiable;
    }

    // Replies that pass need more than a table, and somebody may have taken it away.
    Status compare_replies(const kernel::Hook& hook, const kernel::TableInForce& now,
                           const control::TableSpec& table) {
        plan_.replies = control::replies_of(table, &now);
        if (plan_.replies != now.replies) plan_.replies_before = now.replies;
        if (plan_.replies != SIEVE_ACTION_PASS || plan_.replies_before) return {};
        SIEVE_ASSIGN(const control::RepliesState state, kernel_.read_replies(hook));
        plan_.notes_gone = !state.noting;
        if (table.flows.most && state.memory && state.memory->max_flows != *table.flows.most &&
            !plan_.otherwise)
            plan_.otherwise = Error{
                ErrorKind::attached_otherwise,
                fmt::format("{}: the flow memory in force is for {} flows, and max-flows = {} is "
                            "configured; it gets another size when no interface lets replies pass any more",
                            hook.interface.name, state.memory->max_flows, *table.flows.most),
                {.interface = hook.interface.name}};
        return {};
    }

    void compare(const kernel::Interface& interface, const kernel::TableInForce& now) {
        const InterfaceConfiguration& entry = *plan_.entry;
        for (std::size_t i = 0; i < entry.sets.size(); i++) {
            if (plan_.waits(entry.sets[i])) continue;
            if (const kernel::SetInForce* set = now.find(entry.sets[i]); set != nullptr)
                add_staying(i, *set);
            else
                add_coming(i);
        }
        const auto is_wanted = [&](const std::string& name) {
            return std::find(entry.sets.begin(), entry.sets.end(), name) != entry.sets.end();
        };
        std::vector<std::string> names;
        // As long as the default of drop waits, packets would pass that the sets in force drop.
        const std::size_t stay = plan_.default_waits() || plan_.holds_table()
                                     ? static_cast<std::size_t>(SIEVE_MAX_SETS) - plan_.sets.size()
                                     : 0;
        std::vector<SetPlan> kept;
        std::vector<SetPlan> go;
        for (const kernel::SetInForce& set : now.sets) {
            names.push_back(set.name);
            if (is_wanted(set.name)) continue;
            SetPlan plan{.name = set.name,
                         .action_before = control::action_of(set),
                         .verified_before = set.exact_id != 0};
            auto place = place_of(set.name);
            if (!place && (plan_.default_moves || is_awaited_elsewhere(interface, set.name))) {
                plan.moves = true;
                place = place_in(now, set.name);
            }
            const bool stays = place ? plan_.sets.size() + kept.size() < SIEVE_MAX_SETS : kept.size() < stay;
            if (stays) {
                plan.kept = control::KeptFilter{set.map_id, set.exact_id};
                plan.action = plan.action_before;
                plan.verified = plan.verified_before;
            }
            plan.goes = !stays;
            plan.moves = plan.moves && stays;
            if (stays && place)
                plan_.sets.insert(plan_.sets.begin() + *place, std::move(plan));
            else
                (stays ? kept : go).push_back(std::move(plan));
        }
        plan_.sets.insert(plan_.sets.end(), kept.begin(), kept.end());
        plan_.sets.insert(plan_.sets.end(), go.begin(), go.end());
        const auto is_in_force = [&](const std::string& name) { return now.find(name) != nullptr; };
        if (plan_.holds_table())
            keep_order(names);
        else if (common(entry.sets, is_in_force) != common(names, is_wanted))
            plan_.order_before = names;
        if (now.default_action != plan_.default_action) plan_.default_before = now.default_action;
        if (now.unreadable != plan_.unreadable) plan_.unreadable_before = now.unreadable;
        const bool changes = plan_.default_before || plan_.unreadable_before || plan_.replies_before ||
                             plan_.notes_gone || !plan_.order_before.empty() ||
                             std::any_of(plan_.sets.begin(), plan_.sets.end(),
                                         [](const SetPlan& set) { return set.changes(); });
        plan_.step = changes ? HookStep::change : HookStep::nothing;
    }

    // Sets that stay keep their places among each other. `names` are those in force, in their order.
    void keep_order(const std::vector<std::string>& names) {
        const auto stays = [](const SetPlan& set) { return !set.comes && !set.goes; };
        std::vector<SetPlan> staying;
        for (const std::string& name : names)
            for (const SetPlan& set : plan_.sets)
                if (set.name == name && stays(set)) staying.push_back(set);
        auto next = staying.begin();
        for (SetPlan& set : plan_.sets)
            if (stays(set)) set = *next++;
    }

    // Where a set stays that the configuration does not name: behind the one that has these prefixes besides,
    // as long as that has the list of sources that it no longer has, of which they are a part; or where a set
    // comes that replaces it, and waits or has not all of its list. Nothing: it goes.
    [[nodiscard]] std::optional<std::ptrdiff_t> place_of(const std::string& name) const {
        const auto owner = std::ranges::find_if(plan_.sets, [&](const SetPlan& set) {
            return set.action_before && live::range_set_name(set.name) == name &&
                   wanted_.contains(set.name) && wanted_.at(set.name).of_other_sources;
        });
        if (owner != plan_.sets.end()) return owner - plan_.sets.begin() + 1;
        const std::vector<std::string>& names = plan_.entry->sets;
        const auto successor = std::ranges::find_if(names, [&](const std::string& set) {
            const auto wanted = wanted_.find(set);
            return wanted != wanted_.end() &&
                   (plan_.waits(set) ? wanted->second.replaces : wanted->second.lacks).contains(name);
        });
        if (successor == names.end()) return std::nullopt;
        const auto next = std::ranges::find_if(plan_.sets, [&](const SetPlan& set) {
            return std::find(successor, names.end(), set.name) != names.end();
        });
        return next - plan_.sets.begin();
    }

    // In front of the first one that is behind it now.
    [[nodiscard]] std::ptrdiff_t place_in(const kernel::TableInForce& now, const std::string& name) const {
        const auto at = std::ranges::find(now.sets, name, &kernel::SetInForce::name);
        const auto next = std::ranges::find_if(plan_.sets, [&](const SetPlan& set) {
            return std::find_if(at, now.sets.end(), [&](const auto& one) { return one.name == set.name; }) !=
                   now.sets.end();
        });
        return next - plan_.sets.begin();
    }

    void add_staying(std::size_t i, const kernel::SetInForce& now) {
        WantedVersion wanted = wanted_.at(now.name);
        const std::string identity = identity_in_force(kernel_, now.map_id);
        // Its hook refused the lists since, or was not here.
        if (wanted.filter == WantedFilter::in_force && wanted.has_image() && !wanted.of_other_sources &&
            std::ranges::find(wanted.earlier, identity) != wanted.earlier.end())
            wanted.filter = WantedFilter::last_good;
        SetPlan set{.name = now.name,
                    .action_before = control::action_of(now),
                    .action = actions_[i],
                    .verified_before = now.exact_id != 0,
                    .verified = is_verified(configuration_, now.name) &&
                                (is_verifiable(now.name) ||
                                 (wanted.filter == WantedFilter::in_force && now.exact_id != 0))};
        // It begins to take packets once the sets before it have their lists.
        if (first_friend_ && *first_friend_ < i && control::takes_packets(actions_[i].action) &&
            !control::takes_packets(set.action_before->action))
            set.action = set.action_before;
        // It is another set as soon as its new sources have answered, and no sooner.
        if (wanted.of_other_sources) set.action = set.action_before;
        if (is_held(now.name)) set.action = set.action_before;
        // It keeps what it has.
        if (!wanted.has_image() || is_held(now.name)) set.verified = set.verified_before;
        const bool same = is_held(now.name) ||
                          (set.verified == set.verified_before &&
                           (wanted.filter == WantedFilter::in_force ||
                            (wanted.filter == WantedFilter::last_good && identity == wanted.identity)));
        if (same)
            set.kept = control::KeptFilter{now.map_id, now.exact_id};
        else
            set.new_filter = true;
        plan_.sets.push_back(std::move(set));
    }

    control::Kernel& kernel_;
    const Configuration& configuration_;
    const WantedVersions& wanted_;
    std::map<std::string, control::SetAction> former_; // by the name that the set has now
    HookPlan& plan_;
    std::vector<control::SetAction> actions_;   // of the entry's sets
    std::optional<std::size_t> first_friend_{}; // the first set that passes and waits
};

// The hook where the managed program runs now: its interface may have been renamed since. Nothing if it runs
// at none of these interfaces. Error: that is unknown, since a hook cannot be read, or a program be asked
// for.
Result<std::optional<kernel::Hook>> find_managed(control::Kernel& kernel,
                                                 const std::vector<kernel::Interface>& interfaces,
                                                 const ManagedHook& managed) {
    std::optional<Error> unread;
    const auto read = [&](const kernel::Interface& interface) -> std::optional<kernel::Hook> {
        auto hook = kernel.read_hook(interface, managed.point);
        if (!hook && !unread) unread = std::move(hook.error());
        if (!hook || !hook->ours || hook->ours->id != managed.program_id) return std::nullopt;
        return std::move(*hook);
    };
    for (const kernel::Interface& interface : interfaces)
        if (interface.name == managed.interface)
            if (auto hook = read(interface)) return hook;
    for (const kernel::Interface& interface : interfaces)
        if (interface.name != managed.interface)
            if (auto hook = read(interface)) return hook;
    SIEVE_ASSIGN(const bool is_loaded, kernel.has_program(managed.program_id));
    if (is_loaded && unread) return tl::unexpected(std::move(*unread));
    return std::optional<kernel::Hook>();
}

std::chrono::milliseconds since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

// What goes with the program.
void let_table_go(control::Kernel& kernel, const kernel::Hook& hook, HookPlan& plan) {
    if (!hook.speaks_our_version()) return;
    const kernel::TableInForce table = kernel.read_table(hook);
    for (const kernel::SetInForce& set : table.sets)
        plan.sets.push_back({.name = set.name,
                             .goes = true,
                             .action_before = control::action_of(set),
                             .verified_before = set.exact_id != 0});
    if (table.default_action != plan.default_action) plan.default_before = table.default_action;
}

// Of a hook that an entry names: `hook` with the interface, the entry, and what is held back.
HookPlan plan_at(control::Kernel& kernel, const Configuration& configuration, const WantedVersions& wanted,
                 const kernel::Interface& interface, HookPlan hook) {
    if (Status planned = HookPlanner(kernel, configuration, wanted, hook).run(interface); !planned) {
        hook.step = HookStep::nothing;
        hook.obstacle = std::move(planned.error());
    }
    return hook;
}

// A hook that the configuration names, on an interface that is paused.
HookPlan plan_paused(control::Kernel& kernel, const kernel::Interface& interface, kernel::HookPoint point) {
    HookPlan plan{.interface = interface.name, .point = point, .paused = true};
    Result<kernel::Hook> hook = kernel.read_hook(interface, point);
    if (!hook) {
        plan.obstacle = std::move(hook.error());
    } else if (hook->ours) {
        plan.step = HookStep::unload;
        plan.program_id = hook->ours->id;
        let_table_go(kernel, *hook, plan);
    }
    return plan;
}

// A hook that the service manages and that no entry names any more. Nothing if its program runs at none of
// these interfaces.
std::optional<HookPlan> plan_to_unload(control::Kernel& kernel, const Configuration& configuration,
                                       const std::vector<kernel::Interface>& interfaces,
                                       const ManagedHook& managed) {
    const auto found = find_managed(kernel, interfaces, managed);
    if (!found) {
        if (entry_for(configuration, managed.interface, managed.point) != nullptr) return std::nullopt;
        return HookPlan{.interface = managed.interface,
                        .point = managed.point,
                        .step = HookStep::unload,
                        .program_id = managed.program_id,
                        .obstacle =
                            Error{found.error().kind,
                                  fmt::format("it left the configuration, and what runs there is unknown: {}",
                                              found.error().message)}};
    }
    const std::optional<kernel::Hook>& hook = *found;
    if (!hook) return std::nullopt;
    const std::string& interface = hook->interface.name;
    if (entry_for(configuration, interface, managed.point) != nullptr) return std::nullopt;
    HookPlan plan{.interface = interface,
                  .point = managed.point,
                  .step = HookStep::unload,
                  .program_id = managed.program_id};
    let_table_go(kernel, *hook, plan);
    return plan;
}

} // namespace

bool SetPlan::other_action() const {
    return action && action_before && *action != *action_before;
}

bool SetPlan::changes() const {
    return comes || goes || new_filter || other_action();
}

std::vector<std::string> HookPlan::names() const {
    std::vector<std::string> names;
    for (const SetPlan& set : sets)
        if (!set.goes) names.push_back(set.name);
    return names;
}

bool HookPlan::waits(const std::string& set) const {
    return std::ranges::any_of(waiting, [&](const WaitingSet& one) { return one.name == set; });
}

std::string HookPlan::held_text() const {
    std::vector<std::string> texts;
    for (const auto& [set, why] : held)
        texts.push_back(set.empty() ? why.message : about_set(set, why.message));
    return texts.empty() ? std::string() : fmt::format("held back: {}", fmt::join(texts, "; "));
}

bool HookPlan::default_waits() const {
    return entry != nullptr && default_action != entry->default_action && !holds_table() && !default_moves;
}

bool HookPlan::moves() const {
    return default_moves || std::ranges::any_of(sets, &SetPlan::moves);
}

void HookPlan::let_go_what_moves(const std::set<std::string>* only, bool default_too) {
    for (SetPlan& set : sets) {
        if (!set.moves || (only != nullptr && !only->contains(set.name))) continue;
        set = {.name = set.name,
               .goes = true,
               .action_before = set.action_before,
               .verified_before = set.verified_before};
        step = HookStep::change;
    }
    std::ranges::stable_partition(sets, [](const SetPlan& set) { return !set.goes; });
    if (!default_moves || !default_too) return;
    default_moves = false;
    default_before = std::exchange(default_action, entry->default_action);
    step = HookStep::change;
}

std::string about_set(const std::string& set, const std::string& message) {
    const std::string begin = fmt::format("set {}: ", set);
    std::string text = message;
    for (const std::string& known : {std::string("refused: "), begin})
        if (text.starts_with(known)) text.erase(0, known.size());
    return begin + text;
}

std::string waiting_text(const WaitingSet& set) {
    if (!set.held_back.empty()) return about_set(set.name, set.held_back);
    if (set.behind.empty()) return fmt::format("set {} waits for its first list", set.name);
    return fmt::format("set {} waits for set {}", set.name, set.behind);
}

bool ReconcilePlan::nothing_to_do() const {
    return std::all_of(hooks.begin(), hooks.end(),
                       [](const HookPlan& hook) { return hook.step == HookStep::nothing && !hook.obstacle; });
}

HookPlan plan_hook(control::Kernel& kernel, const Configuration& configuration, const WantedVersions& wanted,
                   const HookPlan& before, HeldBack held) {
    HookPlan hook{
        .interface = before.interface, .point = before.point, .entry = before.entry, .held = std::move(held)};
    for (const kernel::Interface& interface : kernel.interfaces())
        if (interface.name == before.interface)
            return plan_at(kernel, configuration, wanted, interface, std::move(hook));
    hook.obstacle = Error{ErrorKind::changed_meanwhile,
                          fmt::format("{}: the interface has gone meanwhile", before.interface),
                          {.interface = before.interface}};
    return hook;
}

ReconcilePlan make_plan(control::Kernel& kernel, const Configuration& configuration,
                        const WantedVersions& wanted, const std::vector<ManagedHook>& managed,
                        const Pauses& pauses) {
    ReconcilePlan plan;
    const std::vector<kernel::Interface> interfaces = kernel.interfaces();
    for (const kernel::Interface& interface : interfaces)
        for (const kernel::HookPoint point : kernel::all_hook_points) {
            const InterfaceConfiguration* entry = entry_for(configuration, interface.name, point);
            if (entry == nullptr) continue;
            if (pauses.has(interface.name)) {
                plan.hooks.push_back(plan_paused(kernel, interface, point));
                continue;
            }
            plan.hooks.push_back(plan_at(kernel, configuration, wanted, interface,
                                         {.interface = interface.name, .point = point, .entry = entry}));
        }
    for (const InterfaceConfiguration& entry : configuration.interfaces) {
        const bool there =
            std::any_of(interfaces.begin(), interfaces.end(),
                        [&](const kernel::Interface& interface) { return interface.name == entry.name; });
        if (!there && !entry.is_pattern()) plan.missing.push_back(entry.name);
    }
    for (const ManagedHook& hook : managed)
        if (std::optional<HookPlan> unload = plan_to_unload(kernel, configuration, interfaces, hook))
            plan.hooks.push_back(std::move(*unload));
    return plan;
}

struct PreparedHook::Parts {
    Parts(const Configuration& configuration, const HookPlan& its_plan, const StateDirectory& its_state,
          const control::Safety& safety)
        : plan(its_plan), state(its_state), safe(configuration, *its_plan.entry, safety) {}

    const HookPlan& plan;
    const StateDirectory& state;
    EntrySafety safe;
    std::variant<std::monostate, control::PreparedApply, control::PreparedTable> prepared{};
    std::chrono::milliseconds preparing{0};
};

PreparedHook::PreparedHook(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PreparedHook::PreparedHook(PreparedHook&&) noexcept = default;
PreparedHook& PreparedHook::operator=(PreparedHook&&) noexcept = default;
PreparedHook::~PreparedHook() = default;

Result<PreparedHook> PreparedHook::prepare(control::Kernel& kernel, const Configuration& configuration,
                                           const HookPlan& plan,
                                           const std::map<std::string, std::string>& identities,
                                           const StateDirectory& state, const control::Observer& observer,
                                           const control::Safety& safety, const CatchUp& catch_up) {
    const auto start = std::chrono::steady_clock::now();
    auto parts = std::make_unique<Parts>(configuration, plan, state, safety);
    control::TableSpec table = table_of(configuration, plan, plan.names());
    const std::size_t sets = table.sets.size();
    for (std::size_t i = 0; i < table.sets.size(); i++) {
        control::SetSpec& set = table.sets[i];
        // What a set did before, it may go on doing: its target is no reason to keep others' changes out.
        if (plan.sets[i].action_before && !plan.sets[i].other_action()) set.action.reset();
        const auto found = identities.find(set.name);
        if (found == identities.end()) continue; // it keeps the filter in force
        const std::string& identity = found->second;
        set.sources = {state.image_path(set.name, identity)};
        if (catch_up)
            set.catch_up = [name = set.name, catch_up](std::uint32_t map_id) { catch_up(name, map_id); };
        if (plan.sets[i].verified && !plan.sets[i].kept) {
            SIEVE_ASSIGN(std::vector<sieve_key> keys, state.exact_keys(set.name, identity));
            set.verify = control::Verification{
                .keys = std::make_shared<const std::vector<sieve_key>>(std::move(keys))};
        }
    }
    if (plan.step == HookStep::attach) {
        SIEVE_ASSIGN(auto prepared,
                     control::PreparedApply::prepare(kernel, std::move(table), observer, parts->safe.get()));
        parts->prepared = std::move(prepared);
    } else {
        control::NextTable change{.table = std::move(table), .kept = {}, .actions = {}};
        for (std::size_t i = 0; i < sets; i++) {
            change.kept.push_back(plan.sets[i].kept);
            change.actions.push_back(plan.sets[i].action.value_or(control::SetAction{}));
        }
        SIEVE_ASSIGN(auto prepared,
                     control::PreparedTable::prepare(kernel, std::move(change), observer, parts->safe.get()));
        parts->prepared = std::move(prepared);
    }
    parts->preparing = since(start);
    return PreparedHook(std::move(parts));
}

Status PreparedHook::check() {
    // Whoever pauses an interface writes that down, and then takes our program away under the lock. So a
    // program that comes under the lock comes before that, or not at all.
    SIEVE_ASSIGN(const Pauses pauses, parts_->state.pauses());
    if (pauses.has(parts_->plan.interface))
        return failure(ErrorKind::changed_meanwhile,
                       fmt::format("{}: was paused meanwhile, so nothing comes into force there",
                                   parts_->plan.interface),
                       {.interface = parts_->plan.interface});
    if (auto* attaching = std::get_if<control::PreparedApply>(&parts_->prepared)) return attaching->check();
    return std::get<control::PreparedTable>(parts_->prepared).check();
}

Result<HookDone> PreparedHook::commit() {
    HookDone done;
    done.testing = parts_->preparing;
    if (auto* attaching = std::get_if<control::PreparedApply>(&parts_->prepared)) {
        const auto start = std::chrono::steady_clock::now();
        SIEVE_ASSIGN(control::Applied applied, attaching->commit());
        done.program_id = applied.hook.ours ? applied.hook.ours->id : 0;
        done.remarks = std::move(applied.remarks);
        done.warnings = std::move(applied.warnings);
        done.brought_in = parts_->plan.names();
        done.testing += since(start);
        return done;
    }
    SIEVE_ASSIGN(control::TableChanged changed, std::get<control::PreparedTable>(parts_->prepared).commit());
    done.program_id = changed.hook.ours ? changed.hook.ours->id : 0;
    done.warnings = std::move(changed.warnings);
    for (const control::ReadySet& set : changed.brought_in) done.brought_in.push_back(set.name);
    done.swapping = std::chrono::milliseconds(std::lround(changed.milliseconds));
    return done;
}

Result<HookDone> carry_out(control::Kernel& kernel, const Configuration& configuration, const HookPlan& plan,
                           const std::map<std::string, std::string>& identities, const StateDirectory& state,
                           const control::Observer& observer, const control::Safety& safety,
                           const CatchUp& catch_up) {
    HookDone done;
    if (plan.step == HookStep::nothing) {
        done.program_id = plan.program_id;
        return done;
    }
    if (plan.step == HookStep::unload) {
        const auto gone =
            control::unload(kernel, {.interface = plan.interface, .point = plan.point}, observer);
        // Somebody was faster, such as `xdp-sieve pause`.
        if (!gone && gone.error().kind != ErrorKind::not_attached) return tl::unexpected(gone.error());
        return done;
    }
    SIEVE_ASSIGN(PreparedHook prepared, PreparedHook::prepare(kernel, configuration, plan, identities, state,
                                                              observer, safety, catch_up));
    SIEVE_ASSIGN(const control::Held lock, control::hold_lock(kernel, observer));
    SIEVE_TRY(prepared.check());
    return prepared.commit();
}

Result<std::optional<control::Rejoined>>
join_sets(control::Kernel& kernel, const Configuration& configuration, const HookPlan& plan,
          const StateDirectory& state, const SandboxSettings& sandbox, const control::Observer& observer,
          const control::Safety& safety) {
    if (plan.entry == nullptr || !plan.entry->join) return std::optional<control::Rejoined>();
    const control::HookName name{.interface = plan.interface, .point = plan.point};
    SIEVE_ASSIGN(const kernel::Hook hook, control::find_ours(kernel, name));
    const kernel::TableInForce table = kernel.read_table(hook);
    // The record of the filter in force, if its list is kept.
    const auto record_of = [&](const std::string& set) -> std::optional<SetRecord> {
        const SetConfiguration* const found = configuration.find_set(set);
        if (found == nullptr) return std::nullopt;
        std::optional<SetRecord> record = state.read(set, [](const std::string&) {});
        if (!record || record->list_digest.empty() ||
            record->identity != identity_in_force(kernel, table.find(set)->map_id))
            return std::nullopt;
        return record;
    };
    SIEVE_ASSIGN(const std::size_t unjoined,
                 control::count_unjoined(kernel, table,
                                         [&](const std::string& set) { return record_of(set).has_value(); }));
    if (unjoined == 0) return std::optional<control::Rejoined>();
    std::vector<std::string> sets;
    std::map<std::string, std::string> identities;
    for (const kernel::SetInForce& set : table.sets) {
        const std::optional<SetRecord> record = record_of(set.name);
        if (!record) continue;
        sets.push_back(set.name);
        identities.emplace(set.name, record->identity);
    }
    const control::BuildJoint build = [&](const control::JointTask& task) -> Result<JointFilter> {
        JoinRequest request{.task = task, .lists = {}, .sandbox = sandbox};
        for (const control::JointSet& set : task.sets) {
            SIEVE_ASSIGN(UniqueFd list, state.open_list(set.name, identities.at(set.name)));
            request.lists.push_back(std::move(list));
        }
        return join_in_sandbox(request, observer.remark);
    };
    control::Observer silent = observer; // which sets cannot be joined is no news in every cycle
    silent.remark = [](const std::string&) {};
    EntrySafety safe(configuration, *plan.entry, safety);
    SIEVE_ASSIGN(control::Rejoined done, control::rejoin(kernel, name, sets, build, silent, safe.get()));
    return std::optional<control::Rejoined>(std::move(done));
}

} // namespace sieve::service
