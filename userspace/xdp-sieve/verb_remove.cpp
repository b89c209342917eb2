// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve remove: one set less.
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "xdp-sieve/hold_lock.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/table_change.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

struct RemoveArguments {
    std::string interface;
    std::string name;
};

Result<Exit> run_remove(const RemoveArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const kernel::Lock lock, hold_lock(context));
    SIEVE_ASSIGN(const kernel::Hook hook, kernel::find_ours(arguments.interface));
    SIEVE_ASSIGN(WantedChange change, wanted_with(hook, arguments.name));
    change.table.sets.erase(change.table.sets.begin() + static_cast<std::ptrdiff_t>(change.index));
    SIEVE_TRY(kernel::SetTable(*hook.instance).replace(change.table));
    if (context.json)
        fmt::print("{}\n", json_text(nlohmann::json{{"interface", arguments.interface},
                                                    {"removed", arguments.name},
                                                    {"sets_left", change.table.sets.size()}}));
    else if (!context.quiet)
        fmt::print("{}: removed {}, {} sets left\n", arguments.interface, arguments.name,
                   change.table.sets.size());
    return Exit::done;
}

} // namespace

void add_remove(CLI::App& app, Context& context) {
    add_verb(app, context, "remove", "take one set out of force", [&context](Arguments verb) -> Action {
        auto arguments = std::make_shared<RemoveArguments>();
        verb.add("IFACE", arguments->interface, "the interface").required();
        verb.add("NAME", arguments->name, "the set").required();
        return [arguments, &context] { return run_remove(*arguments, context); };
    });
}

} // namespace sieve::cli
