// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve top: the keys that were matched most.
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/control/hold_lock.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/kernel/filter_header.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/set_table.hpp"
#include "libsieve/kernel/sketch.hpp"
#include "xdp-sieve/command.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/hook_argument.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/output.hpp"
#include "xdp-sieve/packet_key.hpp"
#include "xdp-sieve/watch.hpp"

namespace sieve::cli {

namespace {

struct TopArguments {
    std::string interface;
    std::string hook;
    std::size_t most = 10;
    Watch watch;
    bool off = false;
    bool reset = false;
};

// The sets by slot, with the fields that their keys are made of.
struct NamedSet {
    std::string name;
    std::uint32_t fields = 0;
};

std::map<std::uint32_t, NamedSet> named_sets(const kernel::Instance& instance) {
    std::map<std::uint32_t, NamedSet> sets;
    for (const kernel::SetInForce& set : kernel::SetTable(instance).read().sets)
        if (const auto filter = kernel::read_filter_header(set.map_id); filter)
            sets[set.slot] = {set.name, filter->lookup.fields};
    return sets;
}

void print(const TopArguments& arguments, const kernel::Tally& tally,
           const std::map<std::uint32_t, NamedSet>& sets, const Context& context) {
    const double error = kernel::tally_error * static_cast<double>(tally.total);
    if (context.json) {
        nlohmann::ordered_json out = {{"interface", arguments.interface},
                                      {"since", tally.since},
                                      {"matches", tally.total},
                                      {"error", error},
                                      {"error_chance", kernel::tally_failure()},
                                      {"keys", nlohmann::ordered_json::array()}};
        for (const kernel::HeavyKey& heavy : tally.keys)
            if (const auto set = sets.find(heavy.slot); set != sets.end())
                out["keys"].push_back({{"set", set->second.name},
                                       {"packets", heavy.packets},
                                       {"text", format_key(heavy.key, set->second.fields)},
                                       {"key", key_json(heavy.key, set->second.fields)}});
        print_out("{}\n", json_text(out, arguments.watch.on() ? json_one_line : 2));
        return;
    }
    const auto now = static_cast<std::uint64_t>(std::time(nullptr));
    // Counts are whole numbers, so an error below one is none.
    const std::string bound =
        error < 1 ? std::string("exact") : fmt::format("at most {:.0f} too high", error);
    print_out("{}: {} in {}; each count is {} with a probability of {:.1f}%, and none is too low\n",
              arguments.interface, format_counted(tally.total, "match", "matches"),
              format_age(now > tally.since ? now - tally.since : 0), bound,
              100 * (1 - kernel::tally_failure()));
    print_out("{:>16} {:>7}  {:<15} {}\n", "packets", "share", "set", "key");
    for (const kernel::HeavyKey& heavy : tally.keys)
        if (const auto set = sets.find(heavy.slot); set != sets.end())
            print_out("{:>16} {:>6.2f}%  {:<15} {}\n", format_count(heavy.packets),
                      100 * static_cast<double>(heavy.packets) / static_cast<double>(tally.total),
                      set->second.name, format_key(heavy.key, set->second.fields));
}

Result<Exit> switch_off(const kernel::Hook& hook, const TopArguments& arguments, const Context& context) {
    control::RealKernel real;
    SIEVE_ASSIGN(const control::Held lock, control::hold_lock(real, observer(context)));
    if (!kernel::is_tallying(*hook.instance))
        return failure(ErrorKind::no, fmt::format("{}: matches are not counted by key", arguments.interface));
    SIEVE_TRY(kernel::stop_tally(*hook.instance));
    return Exit::done;
}

// Counting begins with the first call, and anew with --reset. True if it has begun just now.
Result<bool> switch_on(const kernel::Hook& hook, bool reset, const Context& context) {
    if (kernel::is_tallying(*hook.instance) && !reset) return false;
    control::RealKernel real;
    SIEVE_ASSIGN(const control::Held lock, control::hold_lock(real, observer(context)));
    if (kernel::is_tallying(*hook.instance) && !reset) return false;
    SIEVE_TRY(kernel::start_tally(*hook.instance));
    return true;
}

Result<Exit> run_top(TopArguments arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_TRY(arguments.watch.begin(arguments.interface));
    if (arguments.interface.empty()) return usage_error("IFACE is required; see `xdp-sieve top --help`");
    SIEVE_ASSIGN(const control::HookName name, parse_hook(arguments.interface, arguments.hook));
    control::RealKernel at;
    SIEVE_ASSIGN(const kernel::Hook hook, control::find_ours(at, name));
    if (arguments.off) return switch_off(hook, arguments, context);
    SIEVE_ASSIGN(const bool begun, switch_on(hook, arguments.reset, context));
    if (begun)
        remark(context,
               fmt::format("matches are counted by key from now on, in {}, until `xdp-sieve top {} --off`",
                           format_bytes(kernel::tally_bytes()), arguments.interface));
    do {
        SIEVE_ASSIGN(const kernel::Tally tally, kernel::read_tally(*hook.instance, arguments.most));
        if (!begun || context.json || arguments.watch.on())
            print(arguments, tally, named_sets(*hook.instance), context);
    } while (flush_output() && arguments.watch.next());
    return Exit::done;
}

} // namespace

void add_top(CLI::App& app, Context& context) {
    add_command(app, context, "top", "show the keys that were matched most",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<TopArguments>();
                    command.add("IFACE", arguments->interface, "the interface");
                    command.add("-n", arguments->most, "how many keys").between(1, 1024).show_default();
                    arguments->watch.add_to(command, "again every SECONDS (1)");
                    command.add_flag("--reset", arguments->reset, "count from zero");
                    command.add_flag("--off", arguments->off, "count no longer");
                    add_hook(command, arguments->hook, hook_in_use);
                    return [arguments, &context] { return run_top(*arguments, context); };
                });
}

} // namespace sieve::cli
