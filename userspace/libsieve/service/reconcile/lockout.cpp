// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/lockout.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/address_key.hpp"
#include "libsieve/service/safety/entry_safety.hpp"
#include "libsieve/util/text/name_some.hpp"

namespace sieve::service {

namespace {

bool list_holds(const Feed& list, uint128 address) {
    for (const AddressRange& range : list.ranges)
        if (range.first <= address && address <= range.last) return true;
    for (std::size_t i = 0; i < list.keys.size(); i++)
        if (address_of_key(list.keys.at(i), SIEVE_FIELD_SRC) == address) return true;
    return false;
}

// The set as it will be.
bool set_holds(const SetSurvey& survey, uint128 address, const StateDirectory& state) {
    if (survey.set->feed.fields != SIEVE_FIELD_SRC) return false;
    if (survey.changed()) {
        const ReadList& read = *survey.examined->read;
        return read.list ? list_holds(*read.list, address)
                         : read.image->contains(key_of_address(address, SIEVE_FIELD_SRC));
    }
    if (!survey.before()) return false;
    const auto image =
        Image::load(std::filesystem::path(state.image_path(survey.set->name, survey.before()->identity)));
    return image && image->contains(key_of_address(address, SIEVE_FIELD_SRC));
}

bool passes(const InterfaceConfiguration& entry, const SetConfiguration& set) {
    const sieve_action action =
        set.action ? set.action->action : control::natural_action(entry.default_action).action;
    return action == SIEVE_ACTION_PASS;
}

// Whether the set may be asked about packets from there at all.
bool may_meet(const SetConfiguration& set, const HostAddress& address, const HookPlan& hook) {
    if (set.condition.fields == 0) return true;
    const auto questions = control::lockout_questions({&address, 1}, hook.interface, hook.point);
    return questions.empty() || std::ranges::any_of(questions, [&](const control::LockoutQuestion& question) {
               return is_met(set.condition, question) != control::Met::no;
           });
}

bool is_held(const HookPlan& hook, const std::vector<SetSurvey>& surveys, const HostAddress& address,
             const StateDirectory& state) {
    const InterfaceConfiguration& entry = *hook.entry;
    return std::any_of(surveys.begin(), surveys.end(), [&](const SetSurvey& survey) {
        return std::find(entry.sets.begin(), entry.sets.end(), survey.set->name) != entry.sets.end() &&
               passes(entry, *survey.set) && may_meet(*survey.set, address, hook) &&
               set_holds(survey, address.address, state);
    });
}

bool can_lock_out(const HookPlan& hook) {
    const bool changes = hook.step == HookStep::attach || hook.step == HookStep::change;
    return changes && !hook.obstacle && hook.entry != nullptr && hook.point != kernel::HookPoint::egress &&
           hook.default_action == SIEVE_ACTION_DROP && hook.entry->protect_host;
}

} // namespace

void refuse_lockouts(ReconcilePlan& plan, const std::vector<SetSurvey>& surveys,
                     const StateDirectory& state) {
    if (surveys.empty()) return;
    for (HookPlan& hook : plan.hooks) {
        if (!can_lock_out(hook)) continue;
        std::vector<std::string> shut_out;
        for (const HostAddress& address : surveys.front().protection.host) {
            if (address.session_through != hook.interface || address.session_through.empty()) continue;
            if (is_held(hook, surveys, address, state)) continue;
            const std::string text =
                fmt::format("{}, {}",
                            format_address(static_cast<std::uint64_t>(address.address >> 64),
                                           static_cast<std::uint64_t>(address.address)),
                            address.what);
            if (std::ranges::find(shut_out, text) == shut_out.end()) shut_out.push_back(text);
        }
        if (shut_out.empty()) continue;
        hook.step = HookStep::nothing;
        hook.locks_out = true;
        hook.obstacle =
            Error{ErrorKind::bad_input,
                  fmt::format(
                      "refused: {} {}: default = \"drop\", and no set that passes holds {}; put {} into the "
                      "list of such a set, or set protect-host = false in the [[interface]]",
                      hook.interface, kernel::hook_point_name(hook.point), name_some(shut_out),
                      shut_out.size() == 1 ? "this address" : "these addresses")};
    }
}

Error lockout_refusal(const Error& refused, const HookPlan& plan) {
    return {ErrorKind::bad_input, "refused: " + lockout_text(refused, plan.entry), refused.facts};
}

} // namespace sieve::service
