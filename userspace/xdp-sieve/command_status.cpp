// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve status: what is attached and which sets are in force, as the kernel tells it.
#include <algorithm>
#include <ctime>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/feeds/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/exact_map.hpp"
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
#include "xdp-sieve/set_report.hpp"
#include "xdp-sieve/unreadable.hpp"
#include "xdp-sieve/way_attached.hpp"

namespace sieve::cli {

namespace {

struct SetStatus {
    kernel::SetInForce set;
    kernel::FilterHeader filter;
    std::uint64_t exact_bytes = 0; // of the exact set; 0: not verified

    [[nodiscard]] double bits_per_key() const {
        return static_cast<double>(kind_of(filter.lookup).lines(filter.lookup)) * SIEVE_LINE_BITS /
               static_cast<double>(std::max<std::uint64_t>(1, filter.file.keys));
    }
    [[nodiscard]] std::string identity() const {
        return fmt::format("{:016x}{:016x}", filter.file.identity[0], filter.file.identity[1]);
    }
    [[nodiscard]] std::uint64_t age() const {
        const auto now = static_cast<std::uint64_t>(std::time(nullptr));
        return now > filter.file.built_at ? now - filter.file.built_at : 0;
    }
    [[nodiscard]] const char* kind() const { return kind_name(filter.lookup.kind); }
};

struct InterfaceStatus {
    kernel::Hook hook;
    sieve_action default_action = SIEVE_ACTION_PASS;
    sieve_action unreadable = SIEVE_ACTION_PASS;
    kernel::Stats stats;
    std::vector<SetStatus> sets;
};

Result<std::vector<SetStatus>> read_sets(const kernel::TableInForce& table) {
    std::vector<SetStatus> sets;
    for (const kernel::SetInForce& set : table.sets) {
        SIEVE_ASSIGN(const kernel::FilterHeader filter, kernel::read_filter_header(set.map_id));
        SetStatus status{set, filter, 0};
        if (set.exact_id != 0) {
            SIEVE_ASSIGN(const std::uint64_t keys, kernel::read_exact_keys(set.exact_id));
            status.exact_bytes = kernel::exact_map_bytes(keys);
        }
        sets.push_back(std::move(status));
    }
    return sets;
}

Result<InterfaceStatus> read_status(kernel::Hook hook) {
    InterfaceStatus status;
    if (hook.instance) {
        // A filter that leaves while we look is gone; then the table is another.
        Result<std::vector<SetStatus>> sets;
        for (int attempt = 0; attempt < 3; attempt++) {
            const kernel::TableInForce table = kernel::SetTable(*hook.instance).read();
            status.default_action = table.default_action;
            status.unreadable = table.unreadable;
            sets = read_sets(table);
            if (sets) break;
        }
        SIEVE_ASSIGN(status.sets, sets);
        SIEVE_ASSIGN(status.stats, kernel::read_stats(*hook.instance));
    }
    status.hook = std::move(hook);
    return status;
}

nlohmann::json to_json(const SetStatus& status) {
    const sieve_file& file = status.filter.file;
    nlohmann::json out = {{"name", status.set.name},
                          {"slot", status.set.slot},
                          {"map_id", status.set.map_id},
                          {"kind", status.kind()},
                          {"key", format_fields(status.filter.lookup.fields)},
                          {"keys", file.keys},
                          {"live_changes", file.changes},
                          {"bits_per_key", status.bits_per_key()},
                          {"bytes", status.filter.bytes},
                          {"fpr",
                           {{"predicted", rate_from_bits(file.predicted_fpr)},
                            {"expected", rate_from_bits(file.expected_fpr)},
                            {"measured", rate_from_bits(file.measured_fpr)},
                            {"measured_trials", file.measured_trials}}},
                          {"identity", status.identity()},
                          {"label", reinterpret_cast<const char*>(file.label)},
                          {"built_at", file.built_at}};
    add_action(out, {status.set.action, status.set.target});
    out["verify"] = status.set.exact_id != 0;
    if (status.set.exact_id != 0) out["verify_bytes"] = status.exact_bytes;
    return out;
}

// One match in so many is sampled for `events`; 0: none.
std::uint32_t sampling(const kernel::Instance& instance) {
    return (instance.control().watch & SIEVE_WATCH_EVENTS) != 0 ? instance.control().sample : 0;
}

nlohmann::json to_json(const InterfaceStatus& status) {
    nlohmann::json out = {{"interface", status.hook.interface.name},
                          {"hook", kernel::hook_point_name(status.hook.point)},
                          {"mode", mode_json(status.hook)},
                          {"program_id", status.hook.ours->id},
                          {"program", status.hook.ours->name}};
    add_way_attached(out, status.hook);
    if (!status.hook.instance) {
        out["error"] = status.hook.other_version;
        return out;
    }
    out["default"] = action_name(status.default_action);
    out["unreadable"] = unreadable_json(status.unreadable, status.stats);
    out["sampling"] = sampling(*status.hook.instance);
    out["tally"] = kernel::is_tallying(*status.hook.instance);
    out["sets"] = nlohmann::json::array();
    for (const SetStatus& set : status.sets) out["sets"].push_back(to_json(set));
    return out;
}

void print_table(const InterfaceStatus& status) {
    const kernel::Hook& hook = status.hook;
    print_out("{}: {}, {}program {}, {}", hook_title(hook), hook.ours->name, mode_text(hook), hook.ours->id,
              way_attached(hook));
    if (!hook.instance) {
        print_out("\n{}  {}\n", neighbours(hook), hook.other_version);
        return;
    }
    print_out(", default {}, unreadable {}{}\n{}", action_name(status.default_action),
              action_name(status.unreadable), status.sets.empty() ? ", no set is in force" : "",
              neighbours(hook));
    if (const std::string unreadable = describe_unreadable(status.stats); !unreadable.empty())
        print_out("  {}\n", unreadable);
    if (const std::uint32_t sample = sampling(*hook.instance); sample != 0)
        print_out("  one match in {} is sampled for `xdp-sieve events`\n", sample);
    if (kernel::is_tallying(*hook.instance)) print_out("  matches are counted by key for `xdp-sieve top`\n");
    if (status.sets.empty()) return;
    print_out("  {:<15} {:<14} {:<8} {:<14} {:>12} {:>9} {:>10} {:>29}  {:<10} {:<8} {}\n", "set", "action",
              "kind", "key", "keys", "bits/key", "memory", "FPR predicted/expected/measured", "age",
              "identity", "from");
    for (const SetStatus& set : status.sets) {
        const sieve_file& file = set.filter.file;
        print_out("  {:<15} {:<14} {:<8} {:<14} {:>12} {:>9.2f} {:>10} {:>9} {:>9} {:>11}  {:<10} {:<8} {}\n",
                  set.set.name, describe_action({set.set.action, set.set.target}), set.kind(),
                  format_fields(set.filter.lookup.fields), format_count(file.keys), set.bits_per_key(),
                  format_bytes(set.filter.bytes), format_rate(rate_from_bits(file.predicted_fpr)),
                  format_rate(rate_from_bits(file.expected_fpr)),
                  format_rate(rate_from_bits(file.measured_fpr)),
                  file.built_at == 0 ? "unknown" : format_age(set.age()), set.identity().substr(0, 8),
                  label_text(file) + (file.changes == 0 ? std::string()
                                                        : fmt::format(", {} inserted or deleted since",
                                                                      format_counted(file.changes, "key"))));
        if (set.exact_bytes > 0)
            print_out("  {:<15} matches are verified with the keys themselves, {} more\n", "",
                      format_bytes(set.exact_bytes));
    }
}

Result<Exit> run_status(const std::string& name, const std::string& hook_name, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName only, parse_hook(name, hook_name));
    std::vector<kernel::Interface> interfaces;
    if (name.empty()) {
        interfaces = kernel::all_interfaces();
    } else {
        SIEVE_ASSIGN(kernel::Interface interface, kernel::find_interface(name));
        interfaces.push_back(std::move(interface));
    }
    std::vector<InterfaceStatus> found;
    std::string foreign;
    for (const kernel::Interface& interface : interfaces)
        for (const kernel::HookPoint point : kernel::all_hook_points) {
            if (only.point && point != *only.point) continue;
            SIEVE_ASSIGN(kernel::Hook hook, kernel::read_hook(interface, point));
            if (hook.foreign())
                foreign = fmt::format(" (it runs {}, id {})",
                                      hook.attached->name.empty() ? "a program without a name"
                                                                  : hook.attached->name,
                                      hook.attached->id);
            if (!hook.ours) continue;
            SIEVE_ASSIGN(InterfaceStatus status, read_status(std::move(hook)));
            found.push_back(std::move(status));
        }
    if (context.json) {
        nlohmann::json out = {{"interfaces", nlohmann::json::array()}};
        for (const InterfaceStatus& status : found) out["interfaces"].push_back(to_json(status));
        print_out("{}\n", json_text(out));
    } else {
        for (const InterfaceStatus& status : found) print_table(status);
        if (found.empty() && !context.quiet)
            print_out("{}\n", name.empty() ? std::string("no interface runs xdp-sieve")
                                           : fmt::format("{} does not run xdp-sieve{}", name, foreign));
    }
    return found.empty() && !name.empty() ? Exit::no : Exit::done;
}

} // namespace

void add_status(CLI::App& app, Context& context) {
    add_command(app, context, "status", "show what is attached and which sets are in force",
                [&context](Arguments command) -> Action {
                    auto interface = std::make_shared<std::string>(), hook = std::make_shared<std::string>();
                    command.add("IFACE", *interface, "one interface; all of them if not given");
                    add_hook(command, *hook, "all of them if not given");
                    return [interface, hook, &context] { return run_status(*interface, *hook, context); };
                });
}

} // namespace sieve::cli
