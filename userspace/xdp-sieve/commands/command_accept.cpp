// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve accept: answers a guard once (libsieve/service/safety/acceptance.hpp).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/state/refusals.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/text/closest_word.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"

namespace sieve::cli {

namespace {

struct AcceptArguments {
    std::string set;
    std::string configuration = service::standard_configuration;
};

constexpr const char* families[SIEVE_FAMILIES] = {"IPv4", "IPv6"};
constexpr const char* family_keys[SIEVE_FAMILIES] = {"ipv4", "ipv6"};

// A configuration with mistakes names what can be understood of it.
std::vector<std::string> known_sets(const std::string& configuration, const std::string& folder) {
    std::vector<std::string> names = service::refused_sets(folder);
    const std::optional<service::Configuration> known = configuration_at(configuration);
    if (!known) return names;
    for (const service::SetConfiguration& set : known->sets) {
        names.push_back(set.name);
        if (service::follows_stream(set)) names.push_back(service::live::range_set_name(set.name));
    }
    return names;
}

Error nothing_refused(const std::string& set, const std::vector<std::string>& known) {
    if (std::ranges::find(known, set) != known.end())
        return {ErrorKind::no, fmt::format("set {}: nothing of it was refused", set), {.set = set}};
    const std::string closest = closest_word(set, known);
    return {ErrorKind::invalid_request,
            closest.empty() ? fmt::format("there is no set {}", printable(set))
                            : fmt::format("there is no set {}, did you mean {}?", printable(set), closest),
            {}};
}

std::string size_text(const service::RefusedList& list) {
    const auto before = [&](double count) {
        return list.entries_before > 0 ? fmt::format(" (in force: {:.15g})", count) : std::string();
    };
    std::string text =
        format_counted(list.entries, "entry", "entries") + before(static_cast<double>(list.entries_before));
    // Of a set that changes in place, nobody counts the addresses in force.
    const bool counted = std::ranges::any_of(list.addresses_before, [](double count) { return count > 0; });
    for (std::size_t i = 0; i < SIEVE_FAMILIES; i++)
        if (list.addresses[i] > 0 || list.addresses_before[i] > 0)
            text += fmt::format(", {:.15g} {} {}{}", list.addresses[i], families[i],
                                list.addresses[i] == 1 ? "address" : "addresses",
                                counted ? before(list.addresses_before[i]) : std::string());
    return text;
}

nlohmann::json to_json(const std::string& set, const service::RefusedList& list) {
    nlohmann::json out = {{"set", set},
                          {"accepted", true},
                          {"guard", list.guard},
                          {"message", list.why},
                          {"digest", list.digest},
                          {"refused_at", list.refused_at},
                          {"entries", list.entries},
                          {"entries_before", list.entries_before}};
    for (std::size_t i = 0; i < SIEVE_FAMILIES; i++) {
        out["addresses"][family_keys[i]] = list.addresses[i];
        out["addresses_before"][family_keys[i]] = list.addresses_before[i];
    }
    return out;
}

// The list that is accepted now; nothing if none is refused any more, such as since it has just been taken.
Result<std::optional<service::RefusedList>> accept_in(const std::string& state, const std::string& set) {
    // What could not be written on the disk is in the spare folder, and newer.
    for (const std::string& folder : {service::standard_spare(state), state}) {
        std::optional<service::RefusedList> list = service::read_refusal(folder, set);
        if (!list) continue;
        list->accepted = true;
        SIEVE_ASSIGN(const bool is_noted, service::replace_refusal(folder, set, *list));
        if (is_noted) return list;
    }
    return std::nullopt;
}

Result<Exit> run_accept(const AcceptArguments& arguments, Context& context) {
    SIEVE_ASSIGN(const std::string state, state_at(arguments.configuration, context));
    if (::access(state.c_str(), R_OK | W_OK | X_OK) != 0 && errno != ENOENT)
        return failure(
            errno == EACCES ? ErrorKind::not_permitted : ErrorKind::kernel_refused,
            fmt::format("state directory {}: cannot be used: {}", printable(state), errno_text(errno)));
    SIEVE_ASSIGN(const std::optional<service::RefusedList> list, accept_in(state, arguments.set));
    if (!list)
        return tl::unexpected(nothing_refused(arguments.set, known_sets(arguments.configuration, state)));
    context.changed = true;
    if (context.json) {
        print_out("{}\n", json_text(to_json(arguments.set, *list)));
    } else if (!context.quiet) {
        print_out("set {}: accepted, once: {}; guard {} had refused it\n", arguments.set, size_text(*list),
                  list->guard);
        const auto manager = service::watching::find_manager();
        print_out("{}\n",
                  manager
                      ? fmt::format("xdp-sieved (process {}) asks its sources now, and takes this list and "
                                    "no other",
                                    manager->pid)
                      : std::string("xdp-sieved does not run; as soon as it does, or with `xdp-sieve "
                                    "apply`, this list is taken, and no other"));
    }
    return Exit::done;
}

} // namespace

void add_accept(CLI::App& app, Context& context) {
    add_command(
        app, context, "accept", "take a list that a guard refused: this very list, once",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<AcceptArguments>();
            command.add("NAME", arguments->set, "the set whose list was refused").required();
            command
                .add("--config", arguments->configuration,
                     "the configuration, which names the state directory; that of a running xdp-sieved "
                     "comes first")
                .called("CONFIG")
                .show_default();
            return [arguments, &context] { return run_accept(*arguments, context); };
        });
}

} // namespace sieve::cli
