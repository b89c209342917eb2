// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "libsieve/api/arguments.hpp"
#include "libsieve/api/handles.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/control/table/edit_table.hpp"
#include "libsieve/control/table/remove.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/control/table/swap.hpp"

using sieve::api::change_options;
using sieve::api::guarded;
using sieve::api::hook_name;
using sieve::api::parse_flows;
using sieve::api::parse_pass_or_drop;
using sieve::api::parse_probation;

namespace {

sieve::Result<std::optional<sieve::control::Position>> position_of(const libsieve_change_options& options) {
    using Where = sieve::control::Position::Where;
    const int given = (options.before != nullptr ? 1 : 0) + (options.after != nullptr ? 1 : 0) +
                      (options.first ? 1 : 0) + (options.last ? 1 : 0);
    if (given > 1)
        return sieve::invalid_request("a set has one place in the order: before, after, first or last");
    if (given == 0) return std::optional<sieve::control::Position>();
    sieve::control::Position position{.where = options.before != nullptr  ? Where::before
                                               : options.after != nullptr ? Where::after
                                               : options.first            ? Where::first
                                                                          : Where::last};
    if (options.before != nullptr) position.other = options.before;
    if (options.after != nullptr) position.other = options.after;
    return std::optional(std::move(position));
}

sieve::Result<std::optional<sieve::control::WantedAction>> action_of(const libsieve_change_options& options) {
    if (options.action == nullptr) return std::optional<sieve::control::WantedAction>();
    constexpr std::string_view redirect = "redirect=";
    const std::string_view text = options.action;
    if (text == redirect) return sieve::invalid_request("action redirect=: expected a target");
    if (text.starts_with(redirect))
        return std::optional(sieve::control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE,
                                                          std::string(text.substr(redirect.size()))});
    SIEVE_ASSIGN(sieve::control::WantedAction action, sieve::control::parse_action(options.action));
    return std::optional(std::move(action));
}

sieve::control::SetSpec set_of(const char* name, const char* path) {
    sieve::control::SetSpec set;
    set.name = name;
    set.sources.emplace_back(path);
    return set;
}

// What a change needs, besides what it changes.
class Change {
  public:
    // `taken` are the options of the function, by their names.
    static sieve::Result<std::unique_ptr<Change>> of(const char* function, const char* interface,
                                                     const char* hook, const libsieve_change_options* given,
                                                     std::initializer_list<const char*> taken) {
        auto change = std::make_unique<Change>();
        SIEVE_ASSIGN(change->options, change_options(function, given, taken));
        SIEVE_ASSIGN(change->where, hook_name(interface, hook));
        SIEVE_ASSIGN(change->safety.confirm_within, parse_probation(change->options.probation));
        if (!change->options.allow_lockout) change->safety.host = &change->host_;
        return change;
    }

    sieve::control::RealKernel kernel;
    libsieve_change_options options{};
    sieve::control::HookName where;
    sieve::control::Safety safety;

  private:
    sieve::control::RealHostAddresses host_;
};

} // namespace

bool libsieve_edit_set(const char* interface, const char* hook, const char* name,
                       const libsieve_change_options* options, libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"name", name}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const std::unique_ptr<Change> change,
                     Change::of("libsieve_edit_set", interface, hook, options,
                                {"action", "before", "after", "first", "last", "keep_counters", "force",
                                 "allow_lockout", "probation"}));
        sieve::control::SetEdit edit{.keep_counters = change->options.keep_counters,
                                     .force = change->options.force};
        SIEVE_ASSIGN(edit.action, action_of(change->options));
        SIEVE_ASSIGN(edit.position, position_of(change->options));
        SIEVE_TRY(sieve::control::edit_set(change->kernel, change->where, name, edit, {}, change->safety));
        return {};
    });
}

bool libsieve_add_set(const char* interface, const char* hook, const char* name, const char* path,
                      const libsieve_change_options* options, libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"name", name}, {"path", path}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const std::unique_ptr<Change> change,
                     Change::of("libsieve_add_set", interface, hook, options,
                                {"action", "before", "after", "first", "last", "force", "allow_lockout",
                                 "probation"}));
        sieve::control::SetSpec set = set_of(name, path);
        SIEVE_ASSIGN(set.action, action_of(change->options));
        SIEVE_ASSIGN(const std::optional<sieve::control::Position> given, position_of(change->options));
        const sieve::control::Position position = given.value_or(sieve::control::Position{});
        SIEVE_ASSIGN(const sieve::kernel::Hook found,
                     sieve::control::find_ours(change->kernel, change->where, position.other));
        change->where.point = found.point;
        if (found.point == sieve::kernel::HookPoint::egress) set.feed.fields = SIEVE_FIELD_DST;
        SIEVE_TRY(sieve::control::add_set(change->kernel, change->where, set, position, change->options.force,
                                          {}, change->safety));
        return {};
    });
}

bool libsieve_swap_set(const char* interface, const char* hook, const char* name, const char* path,
                       const libsieve_change_options* options, libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"name", name}, {"path", path}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(
            const std::unique_ptr<Change> change,
            Change::of("libsieve_swap_set", interface, hook, options, {"allow_lockout", "probation"}));
        SIEVE_TRY(
            sieve::control::swap(change->kernel, change->where, set_of(name, path), {}, change->safety));
        return {};
    });
}

bool libsieve_swap(const char* interface, const char* hook, const char* name, const char* path,
                   libsieve_error** error) {
    return libsieve_swap_set(interface, hook, name, path, nullptr, error);
}

bool libsieve_remove(const char* interface, const char* hook, const char* name, libsieve_error** error) {
    return libsieve_remove_set(interface, hook, name, nullptr, error);
}

bool libsieve_remove_set(const char* interface, const char* hook, const char* name,
                         const libsieve_change_options* options, libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"name", name}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const std::unique_ptr<Change> change,
                     Change::of("libsieve_remove_set", interface, hook, options,
                                {"force", "allow_lockout", "probation"}));
        SIEVE_TRY(sieve::control::remove(change->kernel, change->where, name, {}, change->safety,
                                         change->options.force));
        return {};
    });
}

bool libsieve_edit_default(const char* interface, const char* hook, const char* action,
                           const libsieve_change_options* options, libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"action", action}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const std::unique_ptr<Change> change,
                     Change::of("libsieve_edit_default", interface, hook, options,
                                {"force", "allow_lockout", "probation"}));
        SIEVE_ASSIGN(const sieve_action wanted, parse_pass_or_drop("default", action));
        SIEVE_TRY(sieve::control::edit_default(change->kernel, change->where, wanted, change->options.force,
                                               {}, change->safety));
        return {};
    });
}

bool libsieve_edit_replies(const char* interface, const char* hook, const char* action, uint64_t max_flows,
                           const libsieve_change_options* options, libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"action", action}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(
            const std::unique_ptr<Change> change,
            Change::of("libsieve_edit_replies", interface, hook, options, {"allow_lockout", "probation"}));
        SIEVE_ASSIGN(const sieve_action wanted, parse_pass_or_drop("replies", action));
        SIEVE_ASSIGN(const sieve::control::WantedFlows flows, parse_flows(wanted, max_flows));
        SIEVE_TRY(
            sieve::control::edit_replies(change->kernel, change->where, wanted, flows, {}, change->safety));
        return {};
    });
}
