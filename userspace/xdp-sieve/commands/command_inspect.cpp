// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve inspect: describes an image.
#include <algorithm>
#include <bit>
#include <ctime>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/blocked/blocked_plan.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"

namespace sieve::cli {

namespace {

struct InspectArguments {
    std::string image;
    bool secrets = false;
};

// The number of lines for each number of ones, in steps of `step`.
struct FillHistogram {
    static constexpr int step = 16;
    std::vector<std::uint64_t> lines = std::vector<std::uint64_t>(SIEVE_LINE_BITS / step + 1);
    std::uint64_t ones = 0;
};

FillHistogram fill_histogram(std::span<const sieve_line> filter) {
    FillHistogram histogram;
    for (const sieve_line& line : filter) {
        int ones = 0;
        for (const auto word : line.word) ones += std::popcount(word);
        histogram.ones += static_cast<std::uint64_t>(ones);
        histogram.lines[static_cast<std::size_t>(ones / FillHistogram::step)]++;
    }
    return histogram;
}

std::string identity_text(const sieve_file& file) {
    return fmt::format("{:016x}{:016x}", file.identity[0], file.identity[1]);
}

void print_json(const InspectArguments& arguments, const Image& image, const FillHistogram& histogram,
                double fill) {
    const sieve_lookup& lookup = image.lookup();
    const sieve_file& file = image.file();
    nlohmann::json out = {
        {"image", arguments.image},
        {"format", file.version},
        {"identity", identity_text(file)},
        {"label", label_text(file)},
        {"built_at", file.built_at},
        {"bytes", image.bytes()},
        {"kind", kind_name(lookup.kind)},
        {"key", format_fields(lookup.fields)},
        {"entries", file.entries},
        {"keys", file.keys},
        {"probes", probes_to_json(lookup.fields, image.probes())},
        {"duplicates", file.duplicates},
        {"skipped_lines", file.skipped},
        {"lines", image.filter().size()},
        {"geometry", kind_of(lookup).geometry(lookup)},
        {"witnesses", file.witnesses},
        {"exceptions", file.exceptions},
        {"excluded", file.excluded},
        {"bits_per_key",
         static_cast<double>(image.filter().size()) * SIEVE_LINE_BITS / static_cast<double>(file.keys)},
        {"hashes", lookup.hashes},
        {"choices", lookup.choices},
        {"alpha", alpha_from_image(lookup.alpha)},
        {"rounds", file.rounds},
        {"fill", fill},
        {"fpr",
         {{"predicted", rate_from_bits(file.predicted_fpr)},
          {"expected", rate_from_bits(file.expected_fpr)},
          {"measured", rate_from_bits(file.measured_fpr)},
          {"measured_trials", file.measured_trials}}},
        {"ones_per_line", {{"step", FillHistogram::step}, {"lines", histogram.lines}}},
    };
    if (arguments.secrets) {
        out["hash_key"] = nlohmann::json::array();
        for (const auto word : lookup.hash_key) out["hash_key"].push_back(fmt::format("{:016x}", word));
    }
    print_out("{}\n", json_text(out));
}

void print_table(const InspectArguments& arguments, const Image& image, const FillHistogram& histogram,
                 double fill) {
    const sieve_lookup& lookup = image.lookup();
    const sieve_file& file = image.file();
    print_out("image         {} ({}, format {})\n", arguments.image, format_bytes(image.bytes()),
              file.version);
    print_out("identity      {}\n", identity_text(file));
    print_out("built from    {}\n", label_text(file));
    if (file.built_at != 0)
        print_out("built at      {:%Y-%m-%d %H:%M:%S} UTC\n",
                  fmt::gmtime(static_cast<std::time_t>(file.built_at)));
    else
        print_out("built at      unknown: built with --seed, so its hash keys are no secret\n");
    print_out("keys          {} of {}, {}, {} skipped\n", format_count(file.keys),
              format_fields(lookup.fields), format_counted(file.duplicates, "duplicate"),
              format_counted(file.skipped, "malformed line"));
    if (const ExactKind* exact = kind_of(lookup).exact(); exact != nullptr && !exact->is_of_keys())
        print_out("ranges        {} after merging, of {}\n", format_count(file.keys),
                  format_counted(file.entries, "feed entry", "feed entries"));
    else if (lookup.probes > 0)
        print_out("prefixes      {}, asked for {}\n",
                  format_counted(file.entries, "feed entry", "feed entries"),
                  format_probes(lookup.fields, image.probes()));
    print_out("filter        {}, {:.2f} bits per key, {} of 64 bytes\n", kind_name(lookup.kind),
              static_cast<double>(image.filter().size()) * SIEVE_LINE_BITS / static_cast<double>(file.keys),
              format_counted(image.filter().size(), "line"));
    print_out("geometry      {}, {} of rebalancing\n", kind_of(lookup).geometry(lookup),
              format_counted(file.rounds, "round"));
    print_out("witnesses     {}, tested before the set goes live\n",
              format_counted(file.witnesses, "member key"));
    if (file.exceptions > 0 && (file.excluded > 0 || kind_of(lookup).exact() != nullptr))
        print_out("exceptions    {}, checked with {}: none matches\n", format_count(file.exceptions),
                  format_counted(file.excluded, "question"));
    else if (file.exceptions > 0)
        print_out("exceptions    {}, left to verification\n", format_count(file.exceptions));
    if (kind_of(lookup).exact() != nullptr)
        print_out("false positives: none, since kind {} is exact\n", kind_name(lookup.kind));
    else
        print_out(
            "false positives: predicted {}, expected {}, measured {} ({})\n",
            format_rate(rate_from_bits(file.predicted_fpr)), format_rate(rate_from_bits(file.expected_fpr)),
            format_rate(rate_from_bits(file.measured_fpr)), format_counted(file.measured_trials, "trial"));
    if (arguments.secrets)
        for (std::size_t i = 0; i < std::size(lookup.hash_key); i++)
            print_out("hash key {}    {:016x}\n", i, lookup.hash_key[i]);
    print_out("fill          {:.1f}% of the bits are ones; lines by their number of ones:\n", fill * 100);
    const auto& lines = histogram.lines;
    const std::uint64_t most = *std::max_element(lines.begin(), lines.end());
    for (std::size_t i = 0; i < lines.size(); i++) {
        if (lines[i] == 0) continue;
        constexpr std::uint64_t width = 50;
        print_out("  {:>3} to {:>3} {:>12}  {}\n", i * FillHistogram::step, (i + 1) * FillHistogram::step - 1,
                  format_count(lines[i]),
                  std::string(std::max<std::uint64_t>(1, lines[i] * width / most), '#'));
    }
}

Result<Exit> run_inspect(const InspectArguments& arguments, const Context& context) {
    SIEVE_ASSIGN(const Image image, Image::load(arguments.image));
    const FillHistogram histogram = fill_histogram(image.filter());
    const double fill =
        static_cast<double>(histogram.ones) / static_cast<double>(image.filter().size() * SIEVE_LINE_BITS);
    (context.json ? print_json : print_table)(arguments, image, histogram, fill);
    return Exit::done;
}

} // namespace

void add_inspect(CLI::App& app, Context& context) {
    add_command(app, context, "inspect", "show what an image is", [&context](Arguments command) -> Action {
        auto arguments = std::make_shared<InspectArguments>();
        command.add("IMAGE", arguments->image, "the image").required();
        command.add_flag("--secrets", arguments->secrets, "show the secret hash keys, too");
        return [arguments, &context] { return run_inspect(*arguments, context); };
    });
}

} // namespace sieve::cli
