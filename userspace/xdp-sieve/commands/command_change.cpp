// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve insert, xdp-sieve delete: change keys and prefixes of a set in force, in place.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/keys/change_keys.hpp"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/service/config/values/duration.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/key_arguments.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"
#include "xdp-sieve/arguments/safety_arguments.hpp"

namespace sieve::cli {

namespace {

// The number of refused keys that are named, one on each line. JSON names all.
constexpr std::size_t named_at_most = 8;

struct ChangeArguments {
    bool erase = false;
    bool again = false;
    bool told_ok = false; // keys that need no change are fine
    std::optional<std::string> lifetime;
    bool grow = false;
    std::string interface;
    std::string name;
    std::string hook;
    std::vector<std::string> keys;
    bool standard_input = false;
    bool force = false;
    SafetyArguments safety;

    [[nodiscard]] KeyChange change() const {
        return erase ? KeyChange::erase : again ? KeyChange::insert_again : KeyChange::insert;
    }
    [[nodiscard]] const char* done() const { return erase ? "deleted" : "inserted"; }
};

Result<control::KeyRequest> request_of(const ChangeArguments& arguments) {
    control::KeyRequest request{.change = arguments.change(), .grow = arguments.grow};
    if (!arguments.lifetime) return request;
    if (arguments.again)
        return invalid_request("--for and --again exclude each other: a key that comes twice has no one end");
    request.lifetime = service::parse_duration(*arguments.lifetime);
    if (!request.lifetime || request.lifetime->count() == 0)
        return invalid_request(
            fmt::format("--for {}: expected 1s to 3650d, as a whole number and s, m, h, d or w, such as 90s "
                        "or 4h",
                        *arguments.lifetime));
    return request;
}

std::string why_told(const ChangeArguments& arguments, const control::ChangeableSet& set) {
    if (!arguments.erase && (set.verified || set.exact))
        return "is in the set already; --present-ok leaves it at that";
    return arguments.erase ? "is not in the set"
                           : "matches already, as a member, in a prefix or by mistake; --again inserts it "
                             "nonetheless, --present-ok leaves it at that";
}

constexpr char why_full[] = "does not fit, there is no room for it; delete keys first, or build a larger set "
                            "and swap (a verified set "
                            "grows by --grow)";

std::string other_end_text(const ChangeArguments& arguments, const control::KeysChanged& changed) {
    if (changed.other_end == 0) return {};
    return fmt::format(" ({} {})", format_count(changed.other_end),
                       arguments.lifetime ? "stay longer now" : "stay for good now");
}

std::string key_text(const sieve_key& key, const control::ChangeableSet& set) {
    return set.prefixes ? control::entry_text(key, set.fields) : format_key(key, set.fields);
}

/// Tells what became of keys that were not changed, one line for each.
std::vector<std::string> refused(const ChangeArguments& arguments, const KeyChangeReport& report,
                                 const control::ChangeableSet& set) {
    std::vector<std::string> lines;
    const auto name = [&](const std::vector<sieve_key>& keys, const std::string& why) {
        for (std::size_t i = 0; i < std::min(keys.size(), named_at_most); i++)
            lines.push_back(fmt::format("set {}: {} {}", arguments.name, key_text(keys[i], set), why));
        if (keys.size() > named_at_most)
            lines.push_back(fmt::format("set {}: and so on, {} more", arguments.name,
                                        format_count(keys.size() - named_at_most)));
    };
    if (!arguments.told_ok) name(report.told, why_told(arguments, set));
    name(report.full, why_full);
    return lines;
}

void print_json(const ChangeArguments& arguments, const control::KeysChanged& changed,
                const control::ChangeableSet& set) {
    const KeyChangeReport& report = changed.report;
    const auto texts = [&set](const std::vector<sieve_key>& keys) {
        nlohmann::json list = nlohmann::json::array();
        for (const sieve_key& key : keys) list.push_back(key_text(key, set));
        return list;
    };
    nlohmann::json out = {{"interface", arguments.interface},
                          {"hook", kernel::hook_point_name(set.point)},
                          {"set", arguments.name},
                          {arguments.done(), report.done},
                          {"repeated", report.repeated},
                          {"keys", report.keys},
                          {"expected_fpr", report.expected_fpr},
                          {"expired", changed.expired}};
    out[arguments.erase ? "absent" : "matched_already"] = texts(report.told);
    if (!arguments.erase) {
        out["full"] = texts(report.full);
        out["other_end"] = changed.other_end;
        out["grown"] = changed.grown;
    }
    print_out("{}\n", json_text(out));
}

Result<Exit> run_change(ChangeArguments& arguments, Context& context) {
    kernel::set_verbose(context.verbose);
    if (arguments.keys.empty() != arguments.standard_input)
        return invalid_request(
            fmt::format("{}: give keys after the set, or --stdin", arguments.erase ? "delete" : "insert"));
    SIEVE_ASSIGN(const control::KeyRequest request, request_of(arguments));
    SIEVE_ASSIGN(control::HookName hook, parse_hook(arguments.interface, arguments.hook));
    SIEVE_TRY(may_change(hook, Change::keys, arguments.force, context));
    SIEVE_ASSIGN(const control::Safety safety, arguments.safety.safety(context));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::ChangeableSet set, control::find_changeable(kernel, hook, arguments.name));
    hook.point = set.point;
    SIEVE_ASSIGN(const Members members,
                 read_member_arguments(arguments.keys, arguments.standard_input, set.fields, context));
    SIEVE_ASSIGN(
        const control::KeysChanged changed,
        control::change_keys(kernel, hook, arguments.name, members, request, observer(context), safety));
    const KeyChangeReport& report = changed.report;
    context.changed = report.done > 0 || changed.expired > 0 || changed.grown > 0;
    const std::uint64_t told = arguments.told_ok ? 0 : report.told.size();
    const std::uint64_t left = told + report.full.size();
    if (set.taken_back_in && report.done > 0)
        remark(context,
               fmt::format("set {}: its filter is taken back in {} s, and these keys with it, unless "
                           "`xdp-sieve confirm {}` keeps it",
                           arguments.name,
                           std::chrono::ceil<std::chrono::seconds>(*set.taken_back_in).count(),
                           arguments.interface));
    if (context.json) {
        print_json(arguments, changed, set);
        return left == 0 ? Exit::done : Exit::no;
    }
    const std::vector<std::string> lines = refused(arguments, report, set);
    if (report.done == 0 && left > 0) {
        if (left == 1) return failure(ErrorKind::no, lines.front());
        return failure(
            ErrorKind::no,
            fmt::format("set {}: none of {} keys was {}: {} {}{}", arguments.name, format_count(left),
                        arguments.done(), format_count(told),
                        arguments.erase ? "not in the set"
                        : set.exact     ? "in the set already"
                                        : "matching already",
                        report.full.empty() ? "" : fmt::format(", {} without room", report.full.size())));
    }
    for (const std::string& line : lines) remark(context, line);
    if (changed.grown > 0)
        remark(context,
               fmt::format("set {}: {}", arguments.name,
                           !set.exact              ? "full, so a larger filter was swapped in"
                           : changed.only_for_ends ? "a table that can state these ends was swapped in"
                                                   : "a larger table was swapped in"));
    if (changed.late.count() > 0 && report.done > 0)
        remark(
            context,
            fmt::format(
                "set {}: its short-lived keys may end up to {} s late, since others in it live much longer",
                arguments.name, std::chrono::ceil<std::chrono::seconds>(changed.late).count()));
    if (!context.quiet)
        print_out("{}: {}: {} {} of {}{}; {} in it now{}\n", hook_title(arguments.interface, set.point),
                  arguments.name, arguments.done(), format_count(report.done),
                  format_counted(report.done + report.told.size() + report.full.size(), "key"),
                  other_end_text(arguments, changed),
                  set.prefixes ? format_counted(report.keys, "key") + " stored" : format_count(report.keys),
                  set.exact ? std::string(", exactly")
                            : fmt::format(", FPR {} expected", format_rate(report.expected_fpr)));
    return left == 0 ? Exit::done : Exit::no;
}

Action define(Arguments command, Context& context, bool erase) {
    auto arguments = std::make_shared<ChangeArguments>();
    arguments->erase = erase;
    add_interface(command, arguments->interface, "the interface").required();
    command.add("NAME", arguments->name, "the set, of kind exact or ddlcbf").required();
    command.add(
        "KEY", arguments->keys,
        "keys, and prefixes or ranges of addresses if the set holds prefixes, among several fields also * "
        "for any value; one argument each, fields separated by commas or blanks");
    add_hook(command, arguments->hook, "the one that has the set if not given");
    command.add_flag("--stdin", arguments->standard_input, "read the keys from standard input, as a feed");
    if (erase)
        command.add_flag("--absent-ok", arguments->told_ok, "keys that are not in the set are fine");
    else
        command.add_flag("--present-ok", arguments->told_ok, "keys that match already are fine");
    if (!erase) {
        command
            .add("--for", arguments->lifetime,
                 "the keys end after this time, such as 4h; the next command, `expire` or the service takes "
                 "them out")
            .called("TIME");
        command.add_flag("--grow", arguments->grow,
                         "if a verified set is full, swap a larger filter in (an exact set grows anyway)");
    }
    if (!erase)
        command.add_flag("--again", arguments->again,
                         "also insert keys that match already; delete each as often as it was inserted");
    command.add_flag("--force", arguments->force, help_of_managed);
    arguments->safety.add_questions_to(command);
    return [arguments, &context] { return run_change(*arguments, context); };
}

} // namespace

void add_insert(CLI::App& app, Context& context) {
    add_command(app, context, "insert",
                "add keys to an exact set in force, or keys or prefixes to a ddlcbf set, while packets flow",
                [&context](Arguments command) { return define(command, context, false); });
}

void add_delete(CLI::App& app, Context& context) {
    add_command(
        app, context, "delete",
        "take keys out of an exact set in force, or keys or prefixes out of a ddlcbf set, while packets flow",
        [&context](Arguments command) { return define(command, context, true); });
}

} // namespace sieve::cli
