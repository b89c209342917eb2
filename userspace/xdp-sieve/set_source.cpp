// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/set_source.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "libsieve/feeds/feed.hpp"

namespace sieve::cli {

bool looks_like_image(const std::string& path) {
    std::uint32_t magic = 0;
    std::ifstream file(path, std::ios::binary);
    return file.read(reinterpret_cast<char*>(&magic), sizeof(magic)).good() && magic == SIEVE_MAGIC;
}

Result<BuiltSet> build_from_feeds(const std::vector<std::string>& paths, std::uint32_t fields,
                                  bool skip_invalid, BuildOptions options, const Context& context) {
    const Progress progress = progress_bar(context);
    SIEVE_ASSIGN(Feed feed, read_feed(paths, fields,
                                      {.skip_invalid = skip_invalid,
                                       .ranges = true,
                                       .threads = options.threads,
                                       .progress = progress}));
    if (feed.skipped > 0) {
        remark(context, fmt::format("{} malformed lines were skipped", feed.skipped));
        for (const auto& reason : feed.skipped_first) remark(context, reason);
    }
    std::vector<std::string> names;
    for (const auto& path : paths)
        names.push_back(path == "-" ? path : std::filesystem::path(path).filename().string());
    options.label = fmt::format("{}", fmt::join(names, " "));
    options.skipped = feed.skipped;
    return build_set(std::move(feed.keys), std::move(feed.ranges), options, progress);
}

Result<Image> open_set(const std::string& path, const Context& context) {
    if (looks_like_image(path)) return Image::load(path);
    SIEVE_ASSIGN(BuiltSet built, build_from_feeds({path}, SIEVE_FIELD_SRC, false, {}, context));
    return std::move(built.image);
}

} // namespace sieve::cli
