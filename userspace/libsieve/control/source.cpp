// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/source.hpp"

#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "libsieve/build/exact_keys.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::control {

namespace {

Result<Feed> read_feeds(std::span<Input> inputs, std::uint32_t fields, const ListFormat& format,
                        bool skip_invalid, std::uint32_t threads, const Observer& observer) {
    SIEVE_ASSIGN(Feed feed, read_feed(inputs, fields,
                                      {.format = format,
                                       .skip_invalid = skip_invalid,
                                       .ranges = true,
                                       .threads = threads,
                                       .progress = observer.progress}));
    for (const std::string& decided : feed.decided) observer.remark(decided);
    if (feed.skipped > 0) {
        observer.remark(
            fmt::format("{} malformed line{} skipped", feed.skipped, feed.skipped == 1 ? " was" : "s were"));
        for (const auto& reason : feed.skipped_first) observer.remark(reason);
    }
    return feed;
}

Result<BuiltSet> build_feed(Feed feed, BuildOptions options, const Progress& progress) {
    options.skipped = feed.skipped;
    const std::uint64_t entries = feed.keys.size() + feed.ranges.size();
    SIEVE_ASSIGN(BuiltSet built, build_set(std::move(feed.keys), std::move(feed.ranges), options, progress));
    if (built.report.entries != entries)
        return bad_input(fmt::format("{}: {} entries were read and {} built; this is a bug, please report it",
                                     options.label, entries, built.report.entries));
    return built;
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
    return build_feed(std::move(feed), std::move(options), progress);
}

std::string names_of(std::span<const Input> inputs) {
    std::vector<std::string> names;
    for (const Input& input : inputs) names.push_back(input.name());
    return fmt::format("{}", fmt::join(names, ", "));
}

// Opens an image. If it is to be verified, reads the keys from the feed that it was built from.
Result<OpenedSet> open_image(const SetSpec& spec, SetInputs inputs, const Observer& observer) {
    Input& source = inputs.sources.front();
    if (!spec.feed.chosen.empty())
        return invalid_request(
            fmt::format("set {}: {} is an image, which was built already; {} {} how a feed is "
                        "built",
                        spec.name, source.name(), fmt::join(spec.feed.chosen, " and "),
                        spec.feed.chosen.size() == 1 ? "says" : "say"));
    const bool has_keys = spec.verify && spec.verify->keys != nullptr;
    if (spec.verify && !inputs.verify_feed && !has_keys)
        return failure(ErrorKind::needs_feed,
                       fmt::format("set {} is to be verified, and {} is an image, which cannot list its keys",
                                   spec.name, source.name()),
                       {.set = spec.name, .path = source.name()});
    SIEVE_ASSIGN(Image image, Image::load(source));
    OpenedSet set{std::move(image), {}};
    if (has_keys) set.exact = *spec.verify->keys;
    if (!spec.verify || has_keys) return set;
    SIEVE_ASSIGN(const Feed feed, read_feeds({&*inputs.verify_feed, 1}, set.image.lookup().fields,
                                             ListFormat{}, set.image.file().skipped > 0, 0, observer));
    SIEVE_ASSIGN(set.exact, exact_keys(feed.keys, feed.ranges, set.image, inputs.verify_feed->name()));
    return set;
}

// Builds a set from its feeds.
Result<OpenedSet> open_feeds(const SetSpec& spec, SetInputs inputs, const Observer& observer) {
    if (inputs.verify_feed)
        return invalid_request(
            fmt::format("set {}: a set built from feeds is verified with those feeds, not with {}", spec.name,
                        inputs.verify_feed->name()));
    SIEVE_ASSIGN(Feed feed, read_feeds(inputs.sources, spec.feed.fields, spec.feed.format,
                                       spec.feed.skip_invalid, spec.feed.build.threads, observer));
    std::optional<Feed> kept;
    if (spec.verify) kept = feed;
    SIEVE_ASSIGN(BuiltSet built,
                 build_feed(std::move(feed), inputs.sources, spec.feed.build, observer.progress));
    OpenedSet set{std::move(built.image), {}};
    if (kept) {
        SIEVE_ASSIGN(set.exact, exact_keys(kept->keys, kept->ranges, set.image, names_of(inputs.sources)));
    }
    return set;
}

} // namespace

Result<std::vector<SetInputs>> find_inputs(std::span<const SetSpec> sets, const Input* other) {
    std::vector<SetInputs> all;
    for (const SetSpec& set : sets) {
        SIEVE_ASSIGN(std::vector<Input> sources, Input::of_all(set.sources));
        SetInputs inputs{std::move(sources), {}};
        const std::string feed = set.verify ? set.verify->feed : std::string();
        if (!feed.empty() && set.sources != std::vector{feed}) {
            SIEVE_ASSIGN(inputs.verify_feed, Input::of(feed));
        }
        all.push_back(std::move(inputs));
    }
    std::vector<const Input*> inputs;
    for (const SetInputs& set : all) {
        for (const Input& source : set.sources) inputs.push_back(&source);
        if (set.verify_feed) inputs.push_back(&*set.verify_feed);
    }
    if (other != nullptr) inputs.push_back(other);
    SIEVE_TRY(check_repeated(inputs, Repeated::files));
    return all;
}

Result<Feed> read_list(std::span<Input> feeds, const FeedSpec& spec, const Observer& observer) {
    return read_feeds(feeds, spec.fields, spec.format, spec.skip_invalid, spec.build.threads, observer);
}

Result<BuiltSet> build_list(Feed list, std::span<const Input> feeds, const FeedSpec& spec,
                            const Observer& observer) {
    return build_feed(std::move(list), feeds, spec.build, observer.progress);
}

Result<BuiltSet> build_list(Feed list, const FeedSpec& spec, const Observer& observer) {
    return build_feed(std::move(list), spec.build, observer.progress);
}

Result<BuiltSet> build_from_feeds(std::span<Input> feeds, const FeedSpec& spec, const Observer& observer) {
    SIEVE_ASSIGN(Feed list, read_list(feeds, spec, observer));
    return build_list(std::move(list), feeds, spec, observer);
}

Result<OpenedSet> open_set(const SetSpec& spec, SetInputs inputs, const Observer& observer) {
    if (inputs.sources.empty())
        return invalid_request(fmt::format("set {}: expected an image or a feed", spec.name));
    for (Input& source : inputs.sources) {
        SIEVE_ASSIGN(const bool image, is_image(source));
        if (!image) continue;
        if (inputs.sources.size() == 1) return open_image(spec, std::move(inputs), observer);
        return invalid_request(
            fmt::format("set {}: {} is an image, which is a whole set; only feeds can be put "
                        "together",
                        spec.name, source.name()));
    }
    return open_feeds(spec, std::move(inputs), observer);
}

Result<OpenedSet> open_set(const SetSpec& spec, const Observer& observer) {
    SIEVE_ASSIGN(std::vector<SetInputs> inputs, find_inputs({&spec, 1}));
    return open_set(spec, std::move(inputs.front()), observer);
}

} // namespace sieve::control
