// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve diff: what is different between two lists, or between two images.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "libsieve/control/spec/compare_lists.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"

namespace sieve::cli {

namespace {

struct DiffArguments {
    std::string before;
    std::string now;
    std::string fields = "src";
    std::string format = "auto";
};

// What is compared of images.
struct Row {
    const char* name;
    nlohmann::ordered_json before;
    nlohmann::ordered_json now;
};

std::vector<Row> rows_of(const Image& before, const Image& now) {
    std::vector<Row> rows;
    const auto add = [&](const char* name, const std::function<nlohmann::ordered_json(const Image&)>& value) {
        rows.push_back({name, value(before), value(now)});
    };
    add("built from", [](const Image& image) { return label_text(image.file()); });
    add("key", [](const Image& image) { return format_fields(image.lookup().fields); });
    add("keys", [](const Image& image) { return image.file().keys; });
    add("duplicates", [](const Image& image) { return image.file().duplicates; });
    add("kind", [](const Image& image) { return kind_name(image.lookup().kind); });
    add("geometry", [](const Image& image) { return kind_of(image.lookup()).geometry(image.lookup()); });
    add("probes", [](const Image& image) { return format_probes(image.lookup().fields, image.probes()); });
    add("bytes", [](const Image& image) { return image.bytes(); });
    add("expected rate", [](const Image& image) { return rate_from_bits(image.file().expected_fpr); });
    add("exceptions", [](const Image& image) { return image.file().exceptions; });
    return rows;
}

std::string text_of(const nlohmann::ordered_json& value) {
    if (value.is_number_float()) return format_rate(value.get<double>());
    if (value.is_number()) return format_count(value.get<std::uint64_t>());
    const auto text = value.get<std::string>();
    return text.empty() ? "-" : text;
}

Result<Exit> diff_images(const DiffArguments& arguments, Input& first, Input& second,
                         const Context& context) {
    SIEVE_ASSIGN(const Image before, Image::load(first));
    SIEVE_ASSIGN(const Image now, Image::load(second));
    nlohmann::ordered_json out = {{"before", arguments.before}, {"now", arguments.now}};
    nlohmann::ordered_json changed = nlohmann::ordered_json::object();
    for (const Row& row : rows_of(before, now)) {
        if (row.before == row.now) continue;
        changed[row.name] = {row.before, row.now};
        if (!context.json && !context.quiet)
            print_out("{:<14} {} -> {}\n", row.name, text_of(row.before), text_of(row.now));
    }
    const bool same = changed.empty();
    out["changed"] = std::move(changed);
    if (context.json) print_out("{}\n", json_text(out));
    return same ? Exit::done : Exit::no;
}

Result<Exit> diff_lists(const DiffArguments& arguments, Input& first, Input& second, const Context& context) {
    SIEVE_ASSIGN(const std::uint32_t fields, parse_fields(arguments.fields));
    FeedOptions options{.ranges = true, .key_ranges = true, .progress = progress_bar(context)};
    SIEVE_ASSIGN(options.format, parse_list_format(arguments.format));
    const auto members = [&](Input& input) -> Result<Members> {
        SIEVE_ASSIGN(Feed feed, read_feed({&input, 1}, fields, options));
        for (const std::string& decided : feed.decided) remark(context, decided);
        return members_of(std::move(feed));
    };
    SIEVE_ASSIGN(const Members before, members(first));
    SIEVE_ASSIGN(const Members now, members(second));
    SIEVE_ASSIGN(const control::ListDifference difference, control::compare_lists(before, now));
    if (context.json) {
        print_out("{}\n", json_text(nlohmann::ordered_json{{"before", arguments.before},
                                                           {"now", arguments.now},
                                                           {"gone", difference.gone},
                                                           {"added", difference.added}}));
    } else if (!context.quiet) {
        for (const std::string& text : difference.gone) print_out("- {}\n", text);
        for (const std::string& text : difference.added) print_out("+ {}\n", text);
    }
    return difference.any() ? Exit::no : Exit::done;
}

Result<Exit> run_diff(const DiffArguments& arguments, const Context& context) {
    SIEVE_ASSIGN(std::vector<Input> inputs, Input::of_all({arguments.before, arguments.now}));
    SIEVE_TRY(check_repeated({inputs.data(), inputs.data() + 1}, Repeated::files));
    SIEVE_ASSIGN(const bool first, is_image(inputs[0]));
    SIEVE_ASSIGN(const bool second, is_image(inputs[1]));
    if (first != second)
        return invalid_request(
            fmt::format("diff: {} is an image and {} is none, expected two images or two lists",
                        inputs[first ? 0 : 1].name(), inputs[first ? 1 : 0].name()));
    return (first ? diff_images : diff_lists)(arguments, inputs[0], inputs[1], context);
}

} // namespace

void add_diff(CLI::App& app, Context& context) {
    add_command(app, context, "diff", "compare two lists, or two images; exit 0 if they are equal, 1 if not",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<DiffArguments>();
                    command.add("BEFORE", arguments->before, "a list or an image").required();
                    command.add("NOW", arguments->now, "another one of the same sort").required();
                    command.add("--key", arguments->fields, "of lists: the fields of a key")
                        .called("FIELDS")
                        .show_default();
                    command.add("--format", arguments->format, "of lists: their format")
                        .called("FORMAT")
                        .show_default();
                    return [arguments, &context] { return run_diff(*arguments, context); };
                });
}

} // namespace sieve::cli
