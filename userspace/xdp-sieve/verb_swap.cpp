// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve swap: another filter for one set, while packets flow.
#include <chrono>
#include <memory>

#include <fmt/core.h>

#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "xdp-sieve/hold_lock.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/live_set.hpp"
#include "xdp-sieve/table_change.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

struct SwapArguments {
    std::string interface;
    std::string set;
};

// A set that is verified stays so, and one that is not, too; so the keys must be there.
Status keep_verification(SetArgument& argument, bool verified) {
    if (argument.verify && !verified)
        return usage_error(fmt::format("set {} is not verified; `load` it with verification", argument.name));
    if (verified && !argument.verify) argument.verify = "";
    return {};
}

Result<Exit> run_swap(const SwapArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(SetArgument argument, parse_set_argument(arguments.set));
    if (argument.action)
        return usage_error("swap changes a set's filter only; `load` sets actions and their order");
    {
        SIEVE_ASSIGN(const kernel::Hook hook, kernel::find_ours(arguments.interface));
        SIEVE_ASSIGN(const WantedChange change, wanted_with(hook, argument.name));
        SIEVE_TRY(keep_verification(argument, change.verified));
    }
    SIEVE_ASSIGN(const ReadySets ready, prepare_sets({argument}, false, context));
    const ReadySet& set = ready.sets.front();

    SIEVE_ASSIGN(const kernel::Lock lock, hold_lock(context));
    SIEVE_ASSIGN(const kernel::Hook hook, kernel::find_ours(arguments.interface));
    SIEVE_ASSIGN(WantedChange change, wanted_with(hook, argument.name));
    if (change.verified != set.exact.has_value())
        return kernel_refused(
            fmt::format("set {} was loaded anew in the meantime; swap it again", argument.name));
    change.table.sets[change.index].map_fd = set.map.fd();
    change.table.sets[change.index].exact_fd = set.exact_fd();
    const auto begin = std::chrono::steady_clock::now();
    SIEVE_TRY(kernel::SetTable(*hook.instance).replace(change.table));
    const double milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();

    if (context.json) {
        nlohmann::json out = to_json(set);
        out["interface"] = arguments.interface;
        out["swap_milliseconds"] = milliseconds;
        fmt::print("{}\n", json_text(out));
    } else if (!context.quiet) {
        fmt::print("{}: {}; swapped in {:.0f} ms\n", arguments.interface, describe(set), milliseconds);
    }
    return Exit::done;
}

} // namespace

void add_swap(CLI::App& app, Context& context) {
    add_verb(app, context, "swap", "replace one set's filter while packets flow",
             [&context](Arguments verb) -> Action {
                 auto arguments = std::make_shared<SwapArguments>();
                 verb.add("IFACE", arguments->interface, "the interface").required();
                 verb.add("SET", arguments->set,
                          "NAME=IMAGE[,verify=FEED] or NAME=FEED; the set NAME must be in force")
                     .required();
                 return [arguments, &context] { return run_swap(*arguments, context); };
             });
}

} // namespace sieve::cli
