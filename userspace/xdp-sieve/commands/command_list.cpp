// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve list: prints the keys of a set in force, as far as the kernel knows them.
#include <ctime>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"

namespace sieve::cli {

namespace {

struct ListArguments {
    std::string interface;
    std::string name;
    std::string hook;
    bool hits = false;
    bool never_hit = false;
};

constexpr std::int64_t second = 1'000'000'000;

// The wall clock's time when the key ends, rounded to a second.
std::int64_t ends_at(std::int64_t ends_in) {
    return static_cast<std::int64_t>(std::time(nullptr)) + (ends_in + second / 2) / second;
}

std::string time_text(std::int64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

bool is_asked_for(const ListArguments& arguments, const control::ListedKey& key) {
    return !arguments.never_hit || !key.hit;
}

void print_json(const ListArguments& arguments, const control::KeyList& list) {
    nlohmann::json keys = nlohmann::json::array();
    for (const control::ListedKey& key : list.keys) {
        if (!is_asked_for(arguments, key)) continue;
        nlohmann::json one = {{"key", listed_key_text(key, list)}};
        if (list.marks) one["hit"] = key.hit;
        if (key.ends_in) one["ends_at"] = ends_at(*key.ends_in);
        if (key.ends_in) one["overdue"] = *key.ends_in <= 0;
        keys.push_back(std::move(one));
    }
    print_out("{}\n", json_text(nlohmann::json{{"interface", arguments.interface},
                                               {"hook", kernel::hook_point_name(list.point)},
                                               {"set", arguments.name},
                                               {"key", format_fields(list.fields)},
                                               {"hits", list.marks},
                                               {"whole", list.whole},
                                               {"unlisted", list.unlisted},
                                               {"keys", std::move(keys)}}));
}

Result<Exit> run_list(const ListArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::KeyList list, control::list_keys(kernel, hook, arguments.name));
    if ((arguments.hits || arguments.never_hit) && !list.marks)
        return invalid_request(
            fmt::format("set {} does not mark what packets match: build it with `hits`, as in `{}=LIST,hits`",
                        arguments.name, arguments.name));
    if (context.json) {
        print_json(arguments, list);
        return Exit::done;
    }
    for (const control::ListedKey& key : list.keys) {
        if (!is_asked_for(arguments, key)) continue;
        print_out("{}{}{}\n", listed_key_text(key, list), arguments.hits ? (key.hit ? " yes" : " no") : "",
                  key.ends_in ? fmt::format(" # {} {}", *key.ends_in > 0 ? "until" : "overdue since",
                                            time_text(ends_at(*key.ends_in)))
                              : std::string());
    }
    if (list.unlisted > 0)
        remark(context,
               fmt::format("set {}: these are the keys that were inserted for a time; {} more cannot be "
                           "listed, because the set is not verified",
                           arguments.name, format_counted(list.unlisted, "key")));
    return Exit::done;
}

} // namespace

void add_list(CLI::App& app, Context& context) {
    add_command(
        app, context, "list", "print the keys of a set in force that knows them, as a feed",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<ListArguments>();
            add_interface(command, arguments->interface, "the interface").required();
            command.add("NAME", arguments->name, "the set: exact, of ranges, verified, or with keys that end")
                .required();
            command.add_flag("--hits", arguments->hits,
                             "also print yes or no: whether a packet matched the entry since it came, or "
                             "the set was put in force; of a set built with `hits`");
            command.add_flag("--never-hit", arguments->never_hit,
                             "print only the entries that no packet matched");
            add_hook(command, arguments->hook, "the one that has the set if not given");
            return [arguments, &context] { return run_list(*arguments, context); };
        });
}

} // namespace sieve::cli
