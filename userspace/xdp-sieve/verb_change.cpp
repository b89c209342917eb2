// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve insert, xdp-sieve delete: single keys into and out of a set in force, in place.
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/live_map.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/hold_lock.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/key_arguments.hpp"
#include "xdp-sieve/table_change.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

// So many refused keys are named, one a line; JSON names all.
constexpr std::size_t named_at_most = 8;

struct ChangeArguments {
    bool erase = false;
    bool again = false;
    std::string interface;
    std::string name;
    std::vector<std::string> keys;
    bool standard_input = false;

    [[nodiscard]] KeyChange change() const {
        return erase ? KeyChange::erase : again ? KeyChange::insert_again : KeyChange::insert;
    }
    [[nodiscard]] const char* done() const { return erase ? "deleted" : "inserted"; }
};

/// The set's filter, if keys of it can be changed.
Result<kernel::LiveMap> open_set_in_force(const ChangeArguments& arguments) {
    SIEVE_ASSIGN(const kernel::Hook hook, kernel::find_ours(arguments.interface));
    SIEVE_ASSIGN(const WantedChange found, wanted_with(hook, arguments.name));
    const kernel::LiveTable table = kernel::SetTable(*hook.instance).read();
    const kernel::LiveSet* set = table.find(arguments.name);
    if (set == nullptr)
        return kernel_refused(fmt::format("set {} left while it was being looked for", arguments.name));
    SIEVE_ASSIGN(kernel::LiveMap map, kernel::LiveMap::open(set->map_id));
    if (!kind_of(map.lookup()).facts().changes_live)
        return bad_input(
            fmt::format("set {} is of kind {}, whose keys cannot be changed one by one: change "
                        "its feed, build and swap (with `build --kind {}` this once, to insert "
                        "and delete from then on)",
                        arguments.name, kind_name(map.lookup().kind),
                        names_of_kinds([](const KindFacts& facts) { return facts.changes_live; })));
    if (set->exact_id != 0)
        return bad_input(
            fmt::format("set {} is verified, and its exact keys cannot be changed one by one: change "
                        "its feed and swap, or load it without verification",
                        arguments.name));
    return map;
}

std::string why_told(const ChangeArguments& arguments) {
    return arguments.erase ? "is not in the set"
                           : "matches already, as a member or by mistake; --again inserts it nonetheless";
}

constexpr char why_full[] =
    "does not fit, its buckets are full; delete keys first, or build a larger set and swap";

/// What became of keys that were not changed, one line each.
std::vector<std::string> refused(const ChangeArguments& arguments, const KeyChangeReport& report,
                                 std::uint32_t fields) {
    std::vector<std::string> lines;
    const auto name = [&](const std::vector<sieve_key>& keys, const std::string& why) {
        for (std::size_t i = 0; i < std::min(keys.size(), named_at_most); i++)
            lines.push_back(fmt::format("set {}: {} {}", arguments.name, format_key(keys[i], fields), why));
        if (keys.size() > named_at_most)
            lines.push_back(fmt::format("set {}: and so on, {} more", arguments.name,
                                        format_count(keys.size() - named_at_most)));
    };
    name(report.told, why_told(arguments));
    name(report.full, why_full);
    return lines;
}

void print_json(const ChangeArguments& arguments, const KeyChangeReport& report, std::uint32_t fields) {
    const auto texts = [fields](const std::vector<sieve_key>& keys) {
        nlohmann::json list = nlohmann::json::array();
        for (const sieve_key& key : keys) list.push_back(format_key(key, fields));
        return list;
    };
    nlohmann::json out = {
        {"interface", arguments.interface}, {"set", arguments.name}, {arguments.done(), report.done},
        {"repeated", report.repeated},      {"keys", report.keys},   {"expected_fpr", report.expected_fpr}};
    out[arguments.erase ? "absent" : "matched_already"] = texts(report.told);
    if (!arguments.erase) out["full"] = texts(report.full);
    fmt::print("{}\n", json_text(out));
}

Result<Exit> run_change(const ChangeArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    if (arguments.keys.empty() != arguments.standard_input)
        return usage_error(
            fmt::format("{}: give keys after the set, or --stdin", arguments.erase ? "delete" : "insert"));
    // The keys are read before the lock is taken: somebody may be typing them.
    std::uint32_t fields = 0;
    {
        SIEVE_ASSIGN(const kernel::LiveMap map, open_set_in_force(arguments));
        fields = map.lookup().fields;
    }
    SIEVE_ASSIGN(const KeySet keys,
                 read_key_arguments(arguments.keys, arguments.standard_input, fields, context));

    SIEVE_ASSIGN(const kernel::Lock lock, hold_lock(context));
    SIEVE_ASSIGN(kernel::LiveMap map, open_set_in_force(arguments));
    if (map.lookup().fields != fields)
        return bad_input(
            fmt::format("set {} was swapped for one of other fields ({}) meanwhile; nothing was changed",
                        arguments.name, format_fields(map.lookup().fields)));
    SIEVE_ASSIGN(const KeyChangeReport report, change_keys(map.lookup(), map.file(), map.filter(), keys,
                                                           arguments.change(), progress_bar(context)));
    const std::uint64_t left = report.told.size() + report.full.size();
    if (context.json) {
        print_json(arguments, report, fields);
        return left == 0 ? Exit::done : Exit::no;
    }
    const std::vector<std::string> lines = refused(arguments, report, fields);
    if (report.done == 0) {
        if (left == 1) return tl::unexpected(Error{Exit::no, lines.front()});
        return tl::unexpected(Error{
            Exit::no,
            fmt::format("set {}: none of {} keys was {}: {} {}{}", arguments.name, format_count(left),
                        arguments.done(), format_count(report.told.size()),
                        arguments.erase ? "are not in the set" : "match already",
                        report.full.empty() ? "" : fmt::format(", {} do not fit", report.full.size()))});
    }
    for (const std::string& line : lines) remark(context, line);
    if (!context.quiet)
        fmt::print("{}: {}: {} {} of {} keys; {} in it now, FPR {} expected\n", arguments.interface,
                   arguments.name, arguments.done(), format_count(report.done),
                   format_count(report.done + left), format_count(report.keys),
                   format_rate(report.expected_fpr));
    return left == 0 ? Exit::done : Exit::no;
}

Action define(Arguments verb, Context& context, bool erase) {
    auto arguments = std::make_shared<ChangeArguments>();
    arguments->erase = erase;
    verb.add("IFACE", arguments->interface, "the interface").required();
    verb.add("NAME", arguments->name, "the set, of kind ddlcbf").required();
    verb.add("KEY", arguments->keys, "keys; one argument each, fields separated by commas or blanks");
    verb.add_flag("--stdin", arguments->standard_input, "read the keys from standard input, as a feed");
    if (!erase)
        verb.add_flag(
            "--again", arguments->again,
            "insert also what matches already; it must then be deleted as often as it was inserted");
    return [arguments, &context] { return run_change(*arguments, context); };
}

} // namespace

void add_insert(CLI::App& app, Context& context) {
    add_verb(app, context, "insert", "add keys to a ddlcbf set in force, while packets flow",
             [&context](Arguments verb) { return define(verb, context, false); });
}

void add_delete(CLI::App& app, Context& context) {
    add_verb(app, context, "delete", "take keys out of a ddlcbf set in force, while packets flow",
             [&context](Arguments verb) { return define(verb, context, true); });
}

} // namespace sieve::cli
