// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve build: feeds to an image.
#include <chrono>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/feeds/key_text.hpp"
#include "libsieve/filters/kinds/blocked/blocked_plan.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/set_source.hpp"
#include "xdp-sieve/verb.hpp"

namespace sieve::cli {

namespace {

struct BuildArguments {
    std::string key = "src";
    std::string kind = standard_kind().facts().name;
    BuildOptions options;
    bool skip_invalid = false;
    bool force = false;
    std::string output;
    std::string memory;
    std::string effort = "normal";
    std::vector<std::string> feeds;
};

void print_json(const BuildArguments& arguments, const BuiltSet& built, double seconds) {
    const BuildReport& report = built.report;
    nlohmann::json out = {
        {"image", arguments.output},
        {"bytes", built.image.bytes()},
        {"kind", arguments.kind},
        {"key", arguments.key},
        {"entries", report.entries},
        {"keys", report.keys},
        {"probes", probes_to_json(report.probes)},
        {"duplicates", report.duplicates},
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
    fmt::print("{}\n", json_text(out));
}

void print_table(const BuildArguments& arguments, const BuiltSet& built, double seconds) {
    const BuildReport& report = built.report;
    fmt::print("image         {} ({})\n", arguments.output, format_bytes(built.image.bytes()));
    const std::string lengths = format_probes(report.probes);
    if (lengths.empty())
        fmt::print("keys          {} of {}", format_count(report.keys), arguments.key);
    else
        fmt::print("keys          {} prefixes of {}, made of {} entries", format_count(report.keys),
                   arguments.key, format_count(report.entries));
    fmt::print(", {} duplicates", format_count(report.duplicates));
    if (built.image.file().skipped > 0)
        fmt::print(", {} malformed lines skipped", format_count(built.image.file().skipped));
    if (!lengths.empty()) fmt::print("\nprobes        {}", lengths);
    fmt::print("\nfilter        {}, {:.2f} bits per key, {}, {} rounds of rebalancing\n", arguments.kind,
               report.bits_per_key, kind_of(built.image.lookup()).geometry(built.image.lookup()),
               report.rounds);
    fmt::print("false positives (share of strangers that match)\n");
    if (report.model_fpr)
        fmt::print("  model       {:<10} without rebalancing ({})\n", format_rate(*report.model_fpr),
                   kind_of(built.image.lookup()).facts().model);
    fmt::print("  predicted   {:<10} before the build\n", format_rate(report.predicted_fpr));
    fmt::print("  expected    {:<10} from the bits of this filter\n", format_rate(report.expected_fpr));
    fmt::print("  measured    {:<10} {} of {} random keys\n", format_rate(report.measured_fpr),
               format_count(report.measured_hits), format_count(report.measured_trials));
    fmt::print("time          {:.2f} s\n", seconds);
}

// "16 (ddlcbf: 24)": the size of each kind if none is given.
std::string standard_sizes() {
    const double most_kinds = standard_kind().facts().bits_per_key;
    std::string others;
    for (const FilterKind* kind : filter_kinds())
        if (kind->facts().bits_per_key != most_kinds)
            others += fmt::format(" ({}: {})", kind->facts().name, kind->facts().bits_per_key);
    return fmt::format("{}{}", most_kinds, others);
}

// "blocked 1 to 3 choices (2), ...": what --choices may be, and what it is if not given.
std::string ranges_of_choices() {
    std::string text;
    for (const FilterKind* kind : filter_kinds()) {
        const Choices& choices = kind->facts().choices;
        text += fmt::format("{}{} {} to {} {} ({})", text.empty() ? "" : ", ", kind->facts().name,
                            choices.least, choices.most, choices.many, choices.standard);
    }
    return text;
}

Result<Exit> run_build(BuildArguments& arguments, const Context& context) {
    const auto start = std::chrono::steady_clock::now();
    SIEVE_ASSIGN(arguments.options.kind.kind, parse_kind(arguments.kind));
    SIEVE_ASSIGN(arguments.options.kind.effort, parse_effort(arguments.effort));
    SIEVE_ASSIGN(const std::uint32_t fields, parse_fields(arguments.key));
    if (!arguments.memory.empty()) {
        SIEVE_ASSIGN(arguments.options.memory, parse_bytes(arguments.memory));
    }
    const Replace replace = arguments.force ? Replace::anything : Replace::ours;
    SIEVE_ASSIGN(std::vector<Input> feeds, Input::of_all(arguments.feeds));
    SIEVE_TRY(check_output(arguments.output, image_output(), replace, feeds));
    SIEVE_ASSIGN(BuiltSet built,
                 build_from_feeds(feeds, fields, arguments.skip_invalid, arguments.options, context));
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
    add_verb(
        app, context, "build", "build a filter image out of feeds", [&context](Arguments verb) -> Action {
            auto arguments = std::make_shared<BuildArguments>();
            BuildOptions& options = arguments->options;
            verb.add("--key", arguments->key, "fields of a key: a comma list of src,dst,sport,dport,proto")
                .show_default();
            verb.add("--kind", arguments->kind, "kind of filter: " + names_of_kinds()).show_default();
            Arguments size =
                verb.add_at_most_one("size", "how large; " + standard_sizes() + " bits per key if not given");
            size.add("--bits-per-key", options.bits_per_key, "size by bits per key");
            size.add("--fpr", options.fpr, "size by the false positive rate to stay below");
            size.add("--memory", arguments->memory, "size by bytes, such as 512K, 64M or 1G");
            verb.add("--choices", options.kind.choices,
                     "lines, groups or subtables that a key may be in: " + ranges_of_choices());
            verb.add("--alpha", options.kind.alpha,
                     names_of_kinds([](const KindFacts& f) { return f.takes_alpha; }) +
                         ": share of keys that have a choice of lines, 0 to 1 (1)");
            verb.add("--hashes", options.kind.hashes,
                     names_of_kinds([](const KindFacts& f) { return f.takes_hashes; }) +
                         ": bits set by a key; the best number if not given");
            verb.add("--effort", arguments->effort,
                     "time for a lower rate: fast (no rebalancing), normal or best")
                .show_default();
            verb.add("--rounds", options.kind.rounds,
                     "rounds of rebalancing, whatever the effort; 0 for none");
            verb.add("--seed", options.seed,
                     "build the same image again; for tests, since it makes the hash known");
            verb.add("--threads", options.threads, "threads; as many as processors if not given");
            verb.add("--max-probes", options.prefixes.max_probes,
                     "prefix sets: the most lengths that a packet's address is asked for, 1 to 8")
                .show_default();
            verb.add("--max-keys", options.prefixes.max_keys,
                     "prefix sets: the most prefixes after expansion")
                .show_default();
            verb.add_flag("--skip-invalid", arguments->skip_invalid, "count malformed lines and go on");
            verb.add("-o,--output", arguments->output, "the image to write").required();
            verb.add_flag("--force", arguments->force, "replace a file that is no image, too");
            verb.add("FEED", arguments->feeds, "files of keys, one a line; - is standard input").required();
            return [arguments, &context] { return run_build(*arguments, context); };
        });
}

} // namespace sieve::cli
