// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve status: shows what is attached and which sets are in force, as the kernel reports it.
#include <ctime>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/query/status.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"
#include "xdp-sieve/reports/replies_report.hpp"
#include "xdp-sieve/reports/set_report.hpp"
#include "xdp-sieve/reports/unreadable.hpp"
#include "xdp-sieve/reports/way_attached.hpp"

namespace sieve::cli {

namespace {

using control::HookStatus;
using control::SetStatus;

std::uint64_t age(const SetStatus& set) {
    const auto now = static_cast<std::uint64_t>(std::time(nullptr));
    const std::uint64_t built_at = set.filter.file.built_at;
    return now > built_at ? now - built_at : 0;
}

nlohmann::json json_of(const SetStatus& status) {
    const sieve_file& file = status.filter.file;
    nlohmann::json out = {{"name", status.set.name},
                          {"slot", status.set.slot},
                          {"map_id", status.set.map_id},
                          {"kind", kind_name(status.filter.lookup.kind)},
                          {"key", format_fields(status.filter.lookup.fields)},
                          {"keys", file.keys},
                          {"live_changes", file.changes},
                          {"bits_per_key", status.bits_per_key()},
                          {"bytes", status.filter.bytes},
                          {"fpr",
                           {{"predicted", rate_from_bits(file.predicted_fpr)},
                            {"expected", status.expected_rate()},
                            {"measured", rate_from_bits(file.measured_fpr)},
                            {"measured_trials", file.measured_trials}}},
                          {"identity", status.identity()},
                          {"label", reinterpret_cast<const char*>(file.label)},
                          {"built_at", file.built_at}};
    add_action(out, control::action_of(status.set));
    out["verify"] = status.verified();
    out["joined"] = status.set.joined.has_value();
    if (status.verified()) out["verify_bytes"] = status.exact_bytes;
    out["ending"] = status.ending;
    out["overdue"] = status.overdue;
    return out;
}

// "a, b and c"
std::string joined_sets(const control::TableStatus& table) {
    std::vector<std::string> names;
    for (const SetStatus& set : table.sets)
        if (set.set.joined) names.push_back(set.set.name);
    const std::string last = names.empty() ? "" : std::move(names.back());
    if (!names.empty()) names.pop_back();
    return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

std::int64_t whole_seconds(std::chrono::nanoseconds time) {
    return std::chrono::ceil<std::chrono::seconds>(time).count();
}

nlohmann::json json_of(const HookStatus& status) {
    nlohmann::json out = {{"interface", status.hook.interface.name},
                          {"hook", kernel::hook_point_name(status.hook.point)},
                          {"mode", mode_json(status.hook)},
                          {"program_id", status.hook.ours->id},
                          {"program", status.hook.ours->name}};
    add_way_attached(out, status.hook);
    if (!status.hook.speaks_our_version()) {
        out["error"] = status.hook.other_version;
        return out;
    }
    out["default"] = action_name(status.table.default_action);
    out["unreadable"] = unreadable_json(status.table.unreadable, status.counted());
    out["replies"] = action_name(status.table.replies);
    if (status.replies) out["flows"] = cli::to_json(*status.replies);
    if (status.table.probation) out["probation"] = {{"seconds_left", whole_seconds(*status.table.probation)}};
    if (status.table.taken_back) out["taken_back"] = true;
    out["sampling"] = status.watching.sample;
    out["tally"] = status.watching.counts_keys;
    out["sets"] = nlohmann::json::array();
    for (const SetStatus& set : status.table.sets) out["sets"].push_back(json_of(set));
    return out;
}

void print_table(const HookStatus& status) {
    const kernel::Hook& hook = status.hook;
    print_out("{}: {}, {}program {}, {}", hook_title(hook.interface.name, hook.point), hook.ours->name,
              mode_text(hook), hook.ours->id, way_attached(hook));
    if (!hook.speaks_our_version()) {
        print_out("\n{}  {}\n", neighbours(hook), hook.other_version);
        return;
    }
    print_out(", default {}, unreadable {}, replies {}{}\n{}", action_name(status.table.default_action),
              action_name(status.table.unreadable), action_name(status.table.replies),
              status.table.sets.empty() ? ", no set is in force" : "", neighbours(hook));
    if (const std::string unreadable = describe_unreadable(status.counted()); !unreadable.empty())
        print_out("  {}\n", unreadable);
    if (status.replies) print_out("{}", describe(*status.replies, status.counted().replied));
    if (status.table.probation)
        print_out("  on probation: taken back in {} s unless `xdp-sieve confirm {}` keeps it\n",
                  whole_seconds(*status.table.probation), hook.interface.name);
    if (status.table.taken_back)
        print_out("  the last change was not confirmed in time and was taken back\n");
    if (status.watching.sample != 0)
        print_out("  one packet in {} is sampled for `xdp-sieve events`\n", status.watching.sample);
    if (status.watching.counts_keys) print_out("  matches are counted by key for `xdp-sieve top`\n");
    if (status.table.joint_id != 0) print_out("  one lookup answers for {}\n", joined_sets(status.table));
    if (status.table.sets.empty()) return;
    print_out("  {:<15} {:<14} {:<8} {:<14} {:>12} {:>9} {:>10} {:>29}  {:<10} {:<8} {}\n", "set", "action",
              "kind", "key", "keys", "bits/key", "memory", "FPR predicted/expected/measured", "age",
              "identity", "from");
    for (const SetStatus& set : status.table.sets) {
        const sieve_file& file = set.filter.file;
        print_out("  {:<15} {:<14} {:<8} {:<14} {:>12} {:>9.2f} {:>10} {:>9} {:>9} {:>11}  {:<10} {:<8} {}\n",
                  set.set.name, describe_action(control::action_of(set.set)),
                  kind_name(set.filter.lookup.kind), format_fields(set.filter.lookup.fields),
                  format_count(file.keys), set.bits_per_key(), format_bytes(set.filter.bytes),
                  format_rate(rate_from_bits(file.predicted_fpr)), format_rate(set.expected_rate()),
                  format_rate(rate_from_bits(file.measured_fpr)),
                  file.built_at == 0 ? "unknown" : format_age(age(set)), set.identity().substr(0, 8),
                  label_text(file) + (file.changes == 0 ? std::string()
                                                        : fmt::format(", {} inserted or deleted since",
                                                                      format_counted(file.changes, "key"))));
        if (set.ending > 0 && set.ends_by_itself)
            print_out("  {:<15} {} inserted for a time, {} ended{}\n", "", format_counted(set.ending, "key"),
                      format_count(set.overdue),
                      set.overdue > 0 ? "; insertions and `xdp-sieve expire` use their room again" : "");
        else if (set.ending > 0)
            print_out("  {:<15} {} inserted for a time, {} overdue{}\n", "",
                      format_counted(set.ending, "key"), format_count(set.overdue),
                      set.overdue > 0 ? "; `xdp-sieve expire` takes them out" : "");
        if (set.verified())
            print_out("  {:<15} matches are verified with the keys themselves, {} more\n", "",
                      format_bytes(set.exact_bytes));
    }
}

std::string foreign_text(const std::vector<control::ForeignProgram>& foreign) {
    if (foreign.empty()) return {};
    return fmt::format(" (it runs {}, id {})",
                       foreign.back().name.empty() ? "a program without a name" : foreign.back().name,
                       foreign.back().id);
}

nlohmann::json json_of(const service::watching::Manager& manager) {
    nlohmann::json out = {{"pid", manager.pid},
                          {"started", manager.started},
                          {"state_directory", manager.state},
                          {"version", manager.version},
                          {"standing", manager.standing}};
    if (!manager.listen.empty()) out["status_page"] = "http://" + manager.listen + "/";
    return out;
}

void print_manager(const service::watching::Manager& manager) {
    print_out("managed by xdp-sieved {}, process {}{}\n", printable(manager.version), manager.pid,
              manager.listen.empty() ? std::string()
                                     : fmt::format("; status page: http://{}/", printable(manager.listen)));
    if (!manager.standing.empty()) print_out("{}\n", printable(manager.standing));
}

Result<Exit> run_status(const std::string& interface, const std::string& hook, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName name, parse_hook(interface, hook));
    control::RealKernel kernel;
    SIEVE_ASSIGN(const control::Overview overview, control::read_status(kernel, name));
    const auto manager = service::watching::find_manager();
    Context quiet = context;
    quiet.quiet = true;
    const auto state = state_at(service::standard_configuration, quiet);
    const auto pauses = state ? service::read_pauses(*state) : Result<service::Pauses>();
    const bool paused = pauses && (interface.empty() ? pauses->any() : pauses->has(interface));
    if (context.json) {
        nlohmann::json out = {{"interfaces", nlohmann::json::array()}};
        for (const HookStatus& status : overview.ours) out["interfaces"].push_back(json_of(status));
        if (manager) out["manager"] = json_of(*manager);
        if (paused) out["paused"] = {{"everywhere", pauses->everywhere}, {"interfaces", pauses->interfaces}};
        print_out("{}\n", json_text(out));
    } else {
        if (manager && !context.quiet) print_manager(*manager);
        if (paused && !context.quiet)
            print_out("paused: {}; `xdp-sieve resume` ends that\n", paused_text(*pauses));
        for (const HookStatus& status : overview.ours) print_table(status);
        if (overview.ours.empty() && !context.quiet)
            print_out("{}\n", interface.empty() ? std::string("no interface runs xdp-sieve")
                                                : fmt::format("{} does not run xdp-sieve{}", interface,
                                                              foreign_text(overview.foreign)));
    }
    return overview.ours.empty() && !interface.empty() ? Exit::no : Exit::done;
}

} // namespace

void add_status(CLI::App& app, Context& context) {
    add_command(app, context, "status", "show what is attached and which sets are in force",
                [&context](Arguments command) -> Action {
                    auto interface = std::make_shared<std::string>(), hook = std::make_shared<std::string>();
                    add_interface(command, *interface, "one interface; all of them if not given");
                    add_hook(command, *hook, "all of them if not given");
                    return [interface, hook, &context] { return run_status(*interface, *hook, context); };
                });
}

} // namespace sieve::cli
