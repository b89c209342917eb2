// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/api/arguments.hpp"
#include "libsieve/api/handles.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/control/table/apply.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/control/table/unload.hpp"

using sieve::api::guarded;
using sieve::api::hook_name;
using sieve::api::parse_flows;
using sieve::api::parse_pass_or_drop;
using sieve::api::parse_probation;

namespace {

sieve::Status set_part(sieve_condition& condition, const std::string& field, const std::string& values) {
    for (const sieve::control::ConditionPart& part : sieve::control::condition_parts())
        if (field == part.name) return sieve::control::set_condition(condition, part, values);
    return sieve::invalid_request(
        fmt::format("field `{}` of a condition: expected dport, sport or proto", field));
}

} // namespace

bool libsieve_table_new(const char* interface, const char* hook, libsieve_table** table,
                        libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"table", table}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(sieve::control::HookName where, hook_name(interface, hook));
        auto made = std::make_unique<libsieve_table>();
        made->spec.interface = std::move(where.interface);
        made->spec.point = where.point.value_or(sieve::kernel::HookPoint::xdp);
        *table = made.release();
        return {};
    });
}

bool libsieve_table_set_default(libsieve_table* table, const char* action, libsieve_error** error) {
    return guarded(error, {{"table", table}, {"action", action}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(table->spec.default_action, parse_pass_or_drop("default", action));
        return {};
    });
}

bool libsieve_table_set_unreadable(libsieve_table* table, const char* action, libsieve_error** error) {
    return guarded(error, {{"table", table}, {"action", action}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(table->spec.unreadable, parse_pass_or_drop("unreadable", action));
        return {};
    });
}

bool libsieve_table_set_replies(libsieve_table* table, const char* action, uint64_t max_flows,
                                libsieve_error** error) {
    return guarded(error, {{"table", table}, {"action", action}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const sieve_action replies, parse_pass_or_drop("replies", action));
        SIEVE_ASSIGN(table->spec.flows, parse_flows(replies, max_flows));
        table->spec.replies = replies;
        return {};
    });
}

bool libsieve_table_keep_replies_out(libsieve_table* table, const char* set, libsieve_error** error) {
    return guarded(error, {{"table", table}, {"set", set}}, [&]() -> sieve::Status {
        for (sieve::control::SetSpec& one : table->spec.sets)
            if (one.name == set) {
                one.keeps_replies_out = true;
                return {};
            }
        return sieve::invalid_request(fmt::format("set {}: the table has no such set", set));
    });
}

bool libsieve_table_set_condition(libsieve_table* table, const char* set, const char* field,
                                  const char* values, libsieve_error** error) {
    return guarded(error, {{"table", table}, {"set", set}, {"field", field}, {"values", values}},
                   [&]() -> sieve::Status {
                       for (sieve::control::SetSpec& one : table->spec.sets)
                           if (one.name == set) return set_part(one.condition, field, values);
                       return sieve::invalid_request(fmt::format("set {}: the table has no such set", set));
                   });
}

bool libsieve_table_add(libsieve_table* table, const char* name, const char* path, const char* action,
                        libsieve_error** error) {
    return guarded(error, {{"table", table}, {"name", name}, {"path", path}}, [&]() -> sieve::Status {
        sieve::control::SetSpec set;
        set.name = name;
        set.sources.emplace_back(path);
        if (table->spec.point == sieve::kernel::HookPoint::egress) set.feed.fields = SIEVE_FIELD_DST;
        if (action != nullptr) {
            SIEVE_ASSIGN(set.action, sieve::control::parse_action(action));
        }
        table->spec.sets.push_back(std::move(set));
        return {};
    });
}

bool libsieve_table_allow_lockout(libsieve_table* table, libsieve_error** error) {
    return guarded(error, {{"table", table}}, [&]() -> sieve::Status {
        table->allow_lockout = true;
        return {};
    });
}

bool libsieve_table_protect_list(libsieve_table* table, const char* path, libsieve_error** error) {
    return guarded(error, {{"table", table}, {"path", path}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(std::vector<sieve::control::HostAddress> listed,
                     sieve::control::read_protect_list(path));
        table->protect.insert(table->protect.end(), std::make_move_iterator(listed.begin()),
                              std::make_move_iterator(listed.end()));
        return {};
    });
}

bool libsieve_table_set_force(libsieve_table* table, libsieve_error** error) {
    return guarded(error, {{"table", table}}, [&]() -> sieve::Status {
        table->spec.force = true;
        return {};
    });
}

bool libsieve_table_keep_counters(libsieve_table* table, libsieve_error** error) {
    return guarded(error, {{"table", table}}, [&]() -> sieve::Status {
        table->spec.keep_counters = true;
        return {};
    });
}

bool libsieve_table_set_probation(libsieve_table* table, uint32_t seconds, libsieve_error** error) {
    return guarded(error, {{"table", table}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(table->probation, parse_probation(seconds));
        return {};
    });
}

bool libsieve_table_apply(const libsieve_table* table, libsieve_error** error) {
    return guarded(error, {{"table", table}}, [&]() -> sieve::Status {
        sieve::control::RealKernel kernel;
        sieve::control::RealHostAddresses host({}, table->protect);
        SIEVE_TRY(sieve::control::apply(
            kernel, table->spec, {},
            {.host = table->allow_lockout ? nullptr : &host, .confirm_within = table->probation}));
        return {};
    });
}

void libsieve_table_free(libsieve_table* table) {
    std::unique_ptr<libsieve_table>{table}.reset();
}

bool libsieve_confirm(const char* interface, const char* hook, bool keep, libsieve_error** error) {
    return guarded(error, {{"interface", interface}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const sieve::control::HookName where, hook_name(interface, hook));
        sieve::control::RealKernel kernel;
        SIEVE_TRY(sieve::control::end_probation(
            kernel, where,
            keep ? sieve::control::ProbationEnd::keep : sieve::control::ProbationEnd::take_back, {}));
        return {};
    });
}

bool libsieve_unload(const char* interface, const char* hook, libsieve_error** error) {
    return guarded(error, {{"interface", interface}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const sieve::control::HookName where, hook_name(interface, hook));
        sieve::control::RealKernel kernel;
        SIEVE_TRY(sieve::control::unload(kernel, where, {}));
        return {};
    });
}
