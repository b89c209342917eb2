// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve top: shows the keys that matched most.
#include <ctime>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/query/top_keys.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/maps/sketch.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/packet_key.hpp"
#include "xdp-sieve/arguments/watch.hpp"

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

nlohmann::ordered_json to_json(const TopArguments& arguments, const control::TopKeys& top) {
    nlohmann::ordered_json out = {{"interface", arguments.interface},
                                  {"hook", kernel::hook_point_name(top.point)},
                                  {"since", top.since},
                                  {"matches", top.matches},
                                  {"error", top.error},
                                  {"error_chance", top.error_chance},
                                  {"keys", nlohmann::ordered_json::array()}};
    for (const control::TopKey& key : top.keys)
        out["keys"].push_back({{"set", key.set},
                               {"packets", key.packets},
                               {"text", format_key(key.key, key.fields)},
                               {"key", key_json(key.key, key.fields)}});
    return out;
}

void print_table(const TopArguments& arguments, const control::TopKeys& top) {
    const auto now = static_cast<std::uint64_t>(std::time(nullptr));
    // Counts are whole numbers, so an error below one means an exact count.
    const std::string bound =
        top.error < 1 ? std::string("exact") : fmt::format("at most {:.0f} too high", top.error);
    print_out("{}: {} in {}; no count is too low; each is {} with a probability of {:.1f}%\n",
              hook_title(arguments.interface, top.point), format_counted(top.matches, "match", "matches"),
              format_age(now > top.since ? now - top.since : 0), bound, 100 * (1 - top.error_chance));
    print_out("{:>16} {:>7}  {:<15} {}\n", "packets", "share", "set", "key");
    for (const control::TopKey& key : top.keys)
        print_out("{:>16} {:>6.2f}%  {:<15} {}\n", format_count(key.packets), 100 * top.share(key), key.set,
                  format_key(key.key, key.fields));
}

Result<Exit> run_top(TopArguments arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_TRY(arguments.watch.begin(arguments.interface));
    if (arguments.interface.empty()) return invalid_request("IFACE is required; see `xdp-sieve top --help`");
    SIEVE_ASSIGN(const control::HookName name, parse_hook(arguments.interface, arguments.hook));
    control::RealKernel kernel;
    if (arguments.off) {
        SIEVE_TRY(control::stop_counting_keys(kernel, name, observer(context)));
        return Exit::done;
    }
    SIEVE_ASSIGN(const bool begun, control::count_keys(kernel, name, arguments.reset, observer(context)));
    if (begun)
        remark(context,
               fmt::format("matches are counted by key from now on, in {}, until `xdp-sieve top {}{} --off`",
                           format_bytes(kernel::tally_bytes()), arguments.interface,
                           arguments.hook.empty() ? "" : " --hook " + arguments.hook));
    do {
        SIEVE_ASSIGN(const control::TopKeys top, control::read_top_keys(kernel, name, arguments.most));
        if (context.json)
            print_out("{}\n", json_text(to_json(arguments, top), arguments.watch.on() ? json_one_line : 2));
        else if (!begun || arguments.watch.on())
            print_table(arguments, top);
    } while (flush_output() && arguments.watch.next());
    return Exit::done;
}

} // namespace

void add_top(CLI::App& app, Context& context) {
    add_command(app, context, "top", "show the keys that were matched most",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<TopArguments>();
                    add_interface(command, arguments->interface, "the interface");
                    command.add("-n", arguments->most, "how many keys").between(1, 1024).show_default();
                    arguments->watch.add_to(command, "repeat every SECONDS (1)");
                    command.add_flag("--reset", arguments->reset, "count from zero");
                    command.add_flag("--off", arguments->off, "stop counting");
                    add_hook(command, arguments->hook, hook_in_use);
                    return [arguments, &context] { return run_top(*arguments, context); };
                });
}

} // namespace sieve::cli
