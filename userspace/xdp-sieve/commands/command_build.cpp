// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve build: turns feeds into an image.
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/control/spec/source.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/blocked/blocked_plan.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/files/output.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/geo_data.hpp"
#include "xdp-sieve/arguments/list_sources.hpp"

namespace sieve::cli {

namespace {

struct BuildArguments {
    std::vector<std::optional<std::string>> values; // one for each of build_options() that takes a value
    std::deque<bool> flags; // one for each of build_options(); false for those with a value
    std::optional<std::string> skipped;
    bool force = false;
    std::string output;
    std::vector<std::string> feeds;
};

constexpr char skipped_heading[] = "# skipped by xdp-sieve build\n";

const OutputKind& skipped_output() {
    static const OutputKind kind{.name = "list of skipped lines", .beginnings = {skipped_heading}};
    return kind;
}

void print_json(const BuildArguments& arguments, const BuiltSet& built, double seconds) {
    const BuildReport& report = built.report;
    nlohmann::json out = {
        {"image", arguments.output},
        {"bytes", built.image.bytes()},
        {"kind", kind_name(built.image.lookup().kind)},
        {"key", format_fields(built.image.lookup().fields)},
        {"entries", report.entries},
        {"keys", report.keys},
        {"probes", probes_to_json(built.image.lookup().fields, report.probes)},
        {"duplicates", report.duplicates},
        {"exceptions", report.exceptions},
        {"excluded", report.excluded},
        {"tries", report.tries},
        {"skipped_lines", built.image.file().skipped},
        {"bits_per_key", report.bits_per_key},
        {"hashes", built.image.lookup().hashes},
        {"choices", built.image.lookup().choices},
        {"alpha", alpha_from_image(built.image.lookup().alpha)},
        {"geometry", kind_of(built.image.lookup()).geometry(built.image.lookup())},
        {"rounds", report.rounds},
        {"fpr",
         {{"model_without_rebalancing",
           report.model_fpr ? nlohmann::json(*report.model_fpr) : nlohmann::json()},
          {"predicted", report.predicted_fpr},
          {"expected", report.expected_fpr},
          {"measured", report.measured_fpr},
          {"measured_hits", report.measured_hits},
          {"measured_trials", report.measured_trials}}},
        {"seconds", seconds},
    };
    print_out("{}\n", json_text(out));
}

void print_table(const BuildArguments& arguments, const BuiltSet& built, double seconds) {
    const BuildReport& report = built.report;
    print_out("image         {} ({})\n", arguments.output, format_bytes(built.image.bytes()));
    const std::string lengths = format_probes(built.image.lookup().fields, report.probes);
    const std::string key = format_fields(built.image.lookup().fields);
    const ExactKind* exact = kind_of(built.image.lookup()).exact();
    const bool of_ranges = exact != nullptr && !exact->is_of_keys();
    if (of_ranges)
        print_out("keys          {} of {}, made of {}", format_counted(report.keys, "range"), key,
                  format_counted(report.entries, "entry", "entries"));
    else if (lengths.empty())
        print_out("keys          {} of {}", format_count(report.keys), key);
    else
        print_out("keys          {} of {}, made of {}", format_counted(report.keys, "prefix", "prefixes"),
                  key, format_counted(report.entries, "entry", "entries"));
    if (!of_ranges) print_out(", {}", format_counted(report.duplicates, "duplicate"));
    if (built.image.file().skipped > 0)
        print_out(", {} skipped", format_counted(built.image.file().skipped, "malformed line"));
    if (!lengths.empty()) print_out("\nprobes        {}", lengths);
    if (exact != nullptr) {
        print_out("\nfilter        {}, {:.2f} bits per {}, {}\n", exact->facts().name, report.bits_per_key,
                  of_ranges ? "range" : "key", exact->geometry(built.image.lookup()));
        print_out("false positives: none, since kind {} is exact\n", exact->facts().name);
        if (report.exceptions > 0)
            print_out("exceptions    {}, which are no members\n",
                      format_counted(report.exceptions, "prefix", "prefixes"));
        print_out("time          {:.2f} s\n", seconds);
        return;
    }
    print_out("\nfilter        {}, {:.2f} bits per key, {}, {} of rebalancing\n",
              kind_name(built.image.lookup().kind), report.bits_per_key,
              kind_of(built.image.lookup()).geometry(built.image.lookup()),
              format_counted(report.rounds, "round"));
    print_out("false positives (share of non-members that match)\n");
    if (report.model_fpr)
        print_out("  model       {:<10} without rebalancing ({})\n", format_rate(*report.model_fpr),
                  kind_of(built.image.lookup().kind).facts().model);
    print_out("  predicted   {:<10} before the build\n", format_rate(report.predicted_fpr));
    print_out("  expected    {:<10} from the bits of this filter\n", format_rate(report.expected_fpr));
    print_out("  measured    {:<10} {} of {} random keys\n", format_rate(report.measured_fpr),
              format_count(report.measured_hits), format_count(report.measured_trials));
    if (report.exceptions > 0)
        print_out("exceptions    {}, checked with {}; none matches, in {}\n", format_count(report.exceptions),
                  format_counted(report.excluded, "question"), format_counted(report.tries, "try", "tries"));
    print_out("time          {:.2f} s\n", seconds);
}

// Whether both paths lead to one file, which need not exist.
bool is_same_file(const std::string& one, const std::string& other) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path resolved = fs::weakly_canonical(fs::absolute(one, error), error);
    return !resolved.empty() && resolved == fs::weakly_canonical(fs::absolute(other, error), error);
}

Result<Exit> run_build(BuildArguments& arguments, const Context& context) {
    const auto start = std::chrono::steady_clock::now();
    control::FeedSpec feed;
    for (std::size_t i = 0; i < arguments.values.size(); i++) {
        const control::BuildOption& option = control::build_options()[i];
        if (arguments.flags[i])
            SIEVE_TRY(control::set_build_option(option, "", fmt::format("--{}", option.name), feed));
        if (const auto& text = arguments.values[i])
            SIEVE_TRY(
                control::set_build_option(option, *text, fmt::format("--{} {}", option.name, *text), feed));
    }
    if (arguments.skipped && is_same_file(arguments.output, *arguments.skipped))
        return invalid_request(fmt::format("--skipped {}: found the file of the image, expected another one",
                                           printable(*arguments.skipped)));
    const Replace replace = arguments.force ? Replace::anything : Replace::ours;
    SIEVE_ASSIGN(std::vector<std::string> feeds, expand_sources(arguments.feeds));
    SIEVE_TRY(find_geo_data(feeds, feed.format));
    const control::OpenSource open = source_opener({}, progress_bars(context));
    std::vector<Input> inputs;
    for (const std::string& source : feeds) {
        SIEVE_ASSIGN(Input input, open(source));
        inputs.push_back(std::move(input));
    }
    std::vector<Input> exceptions;
    if (!feed.except.empty()) {
        SIEVE_ASSIGN(Input input, open(feed.except));
        exceptions.push_back(std::move(input));
        std::vector<const Input*> all{exceptions.data()};
        for (const Input& input : inputs) all.push_back(&input);
        SIEVE_TRY(check_repeated(all, Repeated::nothing));
    }
    const auto check = [&](const std::string& path, const OutputKind& kind) -> Status {
        SIEVE_TRY(check_output(path, kind, Replace::anything, exceptions));
        return check_output(path, kind, replace, inputs);
    };
    SIEVE_TRY(check(arguments.output, image_output()));
    std::string skipped = skipped_heading;
    control::Observer watcher = observer(context);
    if (arguments.skipped) {
        SIEVE_TRY(check(*arguments.skipped, skipped_output()));
        watcher.malformed = [&](const std::string& line) { skipped += line + "\n"; };
    }
    SIEVE_ASSIGN(BuiltSet built, control::build_from_feeds(inputs, feed, watcher,
                                                           exceptions.empty() ? nullptr : exceptions.data()));
    if (arguments.skipped) SIEVE_TRY(write_output(*arguments.skipped, skipped, skipped_output(), replace));
    SIEVE_TRY(built.image.save(arguments.output, replace));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (context.json)
        print_json(arguments, built, seconds);
    else if (!context.quiet)
        print_table(arguments, built, seconds);
    return Exit::done;
}

} // namespace

void add_build(CLI::App& app, Context& context) {
    add_command(
        app, context, "build", "build a filter image out of feeds", [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<BuildArguments>();
            arguments->values.resize(control::build_options().size());
            arguments->flags.resize(control::build_options().size());
            for (std::size_t i = 0; i < control::build_options().size(); i++) {
                const control::BuildOption& option = control::build_options()[i];
                const std::string name = fmt::format("--{}", option.name);
                if (option.value != nullptr)
                    command.add(name, arguments->values[i], option.help).called(option.value);
                else
                    command.add_flag(name, arguments->flags[i], option.help);
            }
            command.add("-o,--output", arguments->output, "the image to write").called("FILE").required();
            command
                .add("--skipped", arguments->skipped,
                     "with --skip-invalid: write every skipped line, and why, to this file")
                .called("FILE");
            command.add_flag("--force", arguments->force, "also replace a file that is not an image");
            command
                .add("FEED", arguments->feeds,
                     "files of keys, one a line, folders of them, patterns or URLs; - is standard input")
                .required();
            return [arguments, &context] { return run_build(*arguments, context); };
        });
}

} // namespace sieve::cli
