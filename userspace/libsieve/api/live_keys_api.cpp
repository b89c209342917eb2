// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "libsieve/api/arguments.hpp"
#include "libsieve/api/handles.hpp"
#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/feeds/text/key_text.hpp"

using sieve::api::at_full_size;
using sieve::api::change_options;
using sieve::api::fill;
using sieve::api::guarded;
using sieve::api::hook_name;

namespace {

sieve::Status change(const char* interface, const char* hook, const char* name, const libsieve_keys& keys,
                     const sieve::control::KeyRequest& request, bool allow_lockout,
                     libsieve_keys_changed* changed) {
    SIEVE_ASSIGN(sieve::control::HookName where, hook_name(interface, hook));
    sieve::control::RealKernel kernel;
    sieve::control::RealHostAddresses host;
    SIEVE_ASSIGN(const sieve::control::ChangeableSet set,
                 sieve::control::find_changeable(kernel, where, name));
    if (set.fields != keys.members.fields())
        return sieve::invalid_request(fmt::format("set {} has keys of {}, and these are of {}", name,
                                                  sieve::format_fields(set.fields),
                                                  sieve::format_fields(keys.members.fields())));
    where.point = set.point;
    SIEVE_ASSIGN(const sieve::control::KeysChanged done,
                 sieve::control::change_keys(kernel, where, name, keys.members, request, {},
                                             {.host = allow_lockout ? nullptr : &host}));
    if (changed != nullptr)
        fill(changed, {.size = sizeof(libsieve_keys_changed),
                       .done = done.report.done,
                       .unchanged = done.report.told.size(),
                       .full = done.report.full.size(),
                       .other_end = done.other_end,
                       .expired = done.expired,
                       .keys = done.report.keys,
                       .expected_fpr = done.report.expected_fpr,
                       .grown = done.grown});
    return {};
}

} // namespace

bool libsieve_insert(const char* interface, const char* hook, const char* name, const libsieve_keys* keys,
                     const libsieve_insert_options* given, libsieve_keys_changed* changed,
                     libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"name", name}, {"keys", keys}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const libsieve_insert_options options, at_full_size(given));
        sieve::control::KeyRequest request{.change = options.again ? sieve::KeyChange::insert_again
                                                                   : sieve::KeyChange::insert,
                                           .grow = options.grow};
        constexpr std::uint64_t longest = std::uint64_t{3650} * 86400; // as for `insert --for`
        if (options.seconds > longest)
            return sieve::invalid_request(
                fmt::format("a lifetime of {} seconds: expected at most {}", options.seconds, longest));
        if (options.seconds != 0) request.lifetime = std::chrono::seconds(options.seconds);
        return change(interface, hook, name, *keys, request, options.allow_lockout, changed);
    });
}

bool libsieve_delete(const char* interface, const char* hook, const char* name, const libsieve_keys* keys,
                     const libsieve_change_options* options, libsieve_keys_changed* changed,
                     libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"name", name}, {"keys", keys}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const libsieve_change_options chosen,
                     change_options("libsieve_delete", options, {"allow_lockout"}));
        return change(interface, hook, name, *keys, {.change = sieve::KeyChange::erase}, chosen.allow_lockout,
                      changed);
    });
}

bool libsieve_expire(const char* interface, const char* hook, uint64_t* taken_out, libsieve_error** error) {
    return guarded(error, {}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const sieve::control::HookName where, hook_name(interface, hook));
        sieve::control::RealKernel kernel;
        SIEVE_ASSIGN(const std::vector<sieve::control::ExpiredKeys> sets,
                     sieve::control::expire_keys(kernel, where, {}));
        if (taken_out == nullptr) return {};
        *taken_out = 0;
        for (const sieve::control::ExpiredKeys& set : sets) *taken_out += set.taken_out;
        return {};
    });
}

bool libsieve_list(const char* interface, const char* hook, const char* name, libsieve_key_list** list,
                   libsieve_error** error) {
    return guarded(error, {{"interface", interface}, {"name", name}, {"list", list}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const sieve::control::HookName where, hook_name(interface, hook));
        sieve::control::RealKernel kernel;
        auto made = std::make_unique<libsieve_key_list>();
        SIEVE_ASSIGN(made->list, sieve::control::list_keys(kernel, where, name));
        for (const sieve::control::ListedKey& key : made->list.keys)
            made->texts.push_back(sieve::control::listed_key_text(key, made->list));
        *list = made.release();
        return {};
    });
}

size_t libsieve_key_list_count(const libsieve_key_list* list) {
    return list != nullptr ? list->texts.size() : 0;
}

uint64_t libsieve_key_list_unlisted(const libsieve_key_list* list) {
    return list != nullptr ? list->list.unlisted : 0;
}

bool libsieve_key_list_get(const libsieve_key_list* list, size_t index, libsieve_listed_key* key) {
    if (list == nullptr || key == nullptr || index >= list->texts.size()) return false;
    const std::optional<std::int64_t>& ends_in = list->list.keys[index].ends_in;
    fill(key, {.size = sizeof(libsieve_listed_key),
               .text = list->texts[index].c_str(),
               .ends = ends_in.has_value(),
               .ends_in = ends_in.value_or(0)});
    return true;
}

void libsieve_key_list_free(libsieve_key_list* list) {
    std::unique_ptr<libsieve_key_list>{list}.reset();
}
