// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/set_source.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "libsieve/build/exact_keys.hpp"
#include "libsieve/feeds/feed.hpp"

namespace sieve::cli {

bool looks_like_image(const std::string& path) {
    std::uint32_t magic = 0;
    std::ifstream file(path, std::ios::binary);
    return file.read(reinterpret_cast<char*>(&magic), sizeof(magic)).good() && magic == SIEVE_MAGIC;
}

namespace {

Result<Feed> read_feeds(const std::vector<std::string>& paths, std::uint32_t fields, bool skip_invalid,
                        std::uint32_t threads, const Progress& progress, const Context& context) {
    SIEVE_ASSIGN(
        Feed feed,
        read_feed(paths, fields,
                  {.skip_invalid = skip_invalid, .ranges = true, .threads = threads, .progress = progress}));
    if (feed.skipped > 0) {
        remark(context, fmt::format("{} malformed lines were skipped", feed.skipped));
        for (const auto& reason : feed.skipped_first) remark(context, reason);
    }
    return feed;
}

Result<BuiltSet> build_feed(Feed feed, const std::vector<std::string>& paths, BuildOptions options,
                            const Progress& progress) {
    std::vector<std::string> names;
    names.reserve(paths.size());
    for (const auto& path : paths)
        names.push_back(path == "-" ? path : std::filesystem::path(path).filename().string());
    options.label = fmt::format("{}", fmt::join(names, " "));
    options.skipped = feed.skipped;
    return build_set(std::move(feed.keys), std::move(feed.ranges), options, progress);
}

} // namespace

Result<BuiltSet> build_from_feeds(const std::vector<std::string>& paths, std::uint32_t fields,
                                  bool skip_invalid, BuildOptions options, const Context& context) {
    const Progress progress = progress_bar(context);
    SIEVE_ASSIGN(Feed feed, read_feeds(paths, fields, skip_invalid, options.threads, progress, context));
    return build_feed(std::move(feed), paths, std::move(options), progress);
}

Result<OpenedSet> open_set(const std::string& path, const std::optional<std::string>& verify,
                           const Context& context) {
    const Progress progress = progress_bar(context);
    if (looks_like_image(path)) {
        if (verify && verify->empty())
            return usage_error(
                fmt::format("{}: an image cannot list its keys; verify it with the feed it was "
                            "built of: {},verify=FEED",
                            path, path));
        SIEVE_ASSIGN(Image image, Image::load(path));
        OpenedSet set{std::move(image), {}};
        if (!verify) return set;
        SIEVE_ASSIGN(const Feed feed, read_feeds({*verify}, set.image.lookup().fields,
                                                 set.image.file().skipped > 0, 0, progress, context));
        SIEVE_ASSIGN(set.exact, exact_keys(feed.keys, feed.ranges, set.image, *verify));
        return set;
    }
    if (verify && !verify->empty() && *verify != path)
        return usage_error(fmt::format("{}: a feed is verified with itself: `,verify` alone", path));
    SIEVE_ASSIGN(Feed feed, read_feeds({path}, SIEVE_FIELD_SRC, false, 0, progress, context));
    std::optional<Feed> kept;
    if (verify) kept = feed;
    SIEVE_ASSIGN(BuiltSet built, build_feed(std::move(feed), {path}, {}, progress));
    OpenedSet set{std::move(built.image), {}};
    if (kept) {
        SIEVE_ASSIGN(set.exact, exact_keys(kept->keys, kept->ranges, set.image, path));
    }
    return set;
}

} // namespace sieve::cli
