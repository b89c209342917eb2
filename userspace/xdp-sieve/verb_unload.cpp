// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve unload: takes the program away, and with it everything, since nothing is pinned.
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "xdp-sieve/hold_lock.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

Result<Exit> run_unload(const std::string& name, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const kernel::Lock lock, hold_lock(context));
    SIEVE_ASSIGN(const kernel::Interface interface, kernel::find_interface(name));
    SIEVE_ASSIGN(const kernel::Hook hook, kernel::read_hook(interface));
    // A program of another version can be taken away as well.
    if (!hook.ours) {
        SIEVE_TRY(kernel::find_ours(name));
        return kernel_refused(fmt::format("{} changed while it was looked at; try again", name));
    }
    SIEVE_TRY(kernel::detach(hook));
    if (context.json)
        fmt::print("{}\n", json_text(nlohmann::json{{"interface", name}, {"program_id", hook.ours->id}}));
    else if (!context.quiet)
        fmt::print("{}: unloaded (program {})\n", name, hook.ours->id);
    return Exit::done;
}

} // namespace

void add_unload(CLI::App& app, Context& context) {
    add_verb(app, context, "unload", "take the program and its sets off an interface",
             [&context](Arguments verb) -> Action {
                 auto interface = std::make_shared<std::string>();
                 verb.add("IFACE", *interface, "the interface").required();
                 return [interface, &context] { return run_unload(*interface, context); };
             });
}

} // namespace sieve::cli
