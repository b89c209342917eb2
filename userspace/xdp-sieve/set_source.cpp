// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/set_source.hpp"

#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "libsieve/build/exact_keys.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::cli {

namespace {

Result<Feed> read_feeds(std::span<Input> inputs, std::uint32_t fields, bool skip_invalid,
                        std::uint32_t threads, const Progress& progress, const Context& context) {
    SIEVE_ASSIGN(
        Feed feed,
        read_feed(inputs, fields,
                  {.skip_invalid = skip_invalid, .ranges = true, .threads = threads, .progress = progress}));
    if (feed.skipped > 0) {
        remark(context, fmt::format("{} malformed lines were skipped", feed.skipped));
        for (const auto& reason : feed.skipped_first) remark(context, reason);
    }
    return feed;
}

Result<BuiltSet> build_feed(Feed feed, std::span<const Input> inputs, BuildOptions options,
                            const Progress& progress) {
    std::vector<std::string> names;
    names.reserve(inputs.size());
    for (const Input& input : inputs)
        names.push_back(input.path() == "-"
                            ? input.path()
                            : printable(std::filesystem::path(input.path()).filename().string()));
    options.label = fmt::format("{}", fmt::join(names, " "));
    options.skipped = feed.skipped;
    const std::uint64_t entries = feed.keys.size() + feed.ranges.size();
    SIEVE_ASSIGN(BuiltSet built, build_set(std::move(feed.keys), std::move(feed.ranges), options, progress));
    if (built.report.entries != entries)
        return bad_input(fmt::format("{}: {} entries were read and {} built; this is a bug, please report it",
                                     inputs.front().name(), entries, built.report.entries));
    return built;
}

} // namespace

Result<SetSource> find_source(const std::string& path, const std::optional<std::string>& verify) {
    SIEVE_ASSIGN(Input input, Input::of(path));
    SetSource source{std::move(input), verify.has_value(), {}};
    if (verify && !verify->empty() && *verify != path) {
        SIEVE_ASSIGN(source.feed, Input::of(*verify));
    }
    return source;
}

Status check_sources(const std::vector<SetSource>& sources, const Input* other) {
    std::vector<const Input*> inputs;
    for (const SetSource& source : sources) {
        inputs.push_back(&source.input);
        if (source.feed) inputs.push_back(&*source.feed);
    }
    if (other != nullptr) inputs.push_back(other);
    return check_repeated(inputs, Repeated::files);
}

Result<BuiltSet> build_from_feeds(std::vector<Input>& feeds, std::uint32_t fields, bool skip_invalid,
                                  BuildOptions options, const Context& context) {
    const Progress progress = progress_bar(context);
    SIEVE_ASSIGN(Feed feed, read_feeds(feeds, fields, skip_invalid, options.threads, progress, context));
    return build_feed(std::move(feed), feeds, std::move(options), progress);
}

Result<OpenedSet> open_set(SetSource source, const Context& context) {
    const Progress progress = progress_bar(context);
    const std::string name = source.input.name();
    SIEVE_ASSIGN(const bool image, is_image(source.input));
    if (image) {
        if (source.verified && !source.feed)
            return usage_error(
                fmt::format("{}: a verified set needs its keys, and an image cannot list its keys: give the "
                            "feed it was built of: {},verify=FEED",
                            name, name));
        SIEVE_ASSIGN(Image loaded, Image::load(source.input));
        OpenedSet set{std::move(loaded), {}};
        if (!source.verified) return set;
        SIEVE_ASSIGN(const Feed feed, read_feeds({&*source.feed, 1}, set.image.lookup().fields,
                                                 set.image.file().skipped > 0, 0, progress, context));
        SIEVE_ASSIGN(set.exact, exact_keys(feed.keys, feed.ranges, set.image, source.feed->name()));
        return set;
    }
    if (source.feed)
        return usage_error(fmt::format("{}: a feed is verified with itself: `,verify` alone", name));
    const std::span<Input> inputs(&source.input, 1);
    SIEVE_ASSIGN(Feed feed, read_feeds(inputs, SIEVE_FIELD_SRC, false, 0, progress, context));
    std::optional<Feed> kept;
    if (source.verified) kept = feed;
    SIEVE_ASSIGN(BuiltSet built, build_feed(std::move(feed), inputs, {}, progress));
    OpenedSet set{std::move(built.image), {}};
    if (kept) {
        SIEVE_ASSIGN(set.exact, exact_keys(kept->keys, kept->ranges, set.image, name));
    }
    return set;
}

} // namespace sieve::cli
