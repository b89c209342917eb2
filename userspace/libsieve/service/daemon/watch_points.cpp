// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/watch_points.hpp"

#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "libsieve/service/sources/file_source.hpp"

namespace sieve::service {

namespace {

namespace fs = std::filesystem;

// As many as the kernel follows.
constexpr int most_links = 40;

bool is_pattern(const std::string& name) {
    return name.find_first_of("*?[") != std::string::npos;
}

class PointFinder {
  public:
    // Walks to a file or a folder. True if it is there.
    bool walk(const fs::path& path) {
        std::deque<fs::path> left(path.begin(), path.end());
        fs::path at = "/";
        int links = 0;
        while (!left.empty()) {
            const fs::path part = left.front();
            left.pop_front();
            if (part.empty() || part == "." || part == "/") continue;
            if (part == "..") {
                at = at.parent_path();
                continue;
            }
            add({.folder = at.string(), .names = WatchPoint::Names::none, .on_the_way = true});
            const fs::path next = at / part;
            std::error_code error;
            const fs::file_status status = fs::symlink_status(next, error);
            if (fs::is_symlink(status) && ++links <= most_links) {
                add_name(at, part);
                const fs::path target = fs::read_symlink(next, error);
                if (error) return false;
                if (target.is_absolute()) at = "/";
                left.insert(left.begin(), target.begin(), target.end());
                continue;
            }
            if (!fs::exists(status)) {
                add_name(at, part);
                return false;
            }
            at = next;
        }
        end_ = at;
        return true;
    }

    // Where the last walk has ended, without symbolic links.
    [[nodiscard]] const fs::path& end() const { return end_; }

    void add(WatchPoint point) {
        if (std::find(points_.begin(), points_.end(), point) == points_.end())
            points_.push_back(std::move(point));
    }
    // The lists in a folder; the folder may go away.
    void add_lists(const std::string& folder, WatchPoint::Names names, const std::string& name = {}) {
        add({.folder = folder, .names = WatchPoint::Names::none, .on_the_way = true});
        add({.folder = folder, .names = names, .name = name});
    }
    void add_name(const fs::path& folder, const fs::path& name) {
        add({.folder = folder.string(),
             .names = WatchPoint::Names::one,
             .name = name.string(),
             .on_the_way = true});
    }

    std::vector<WatchPoint> points() && { return std::move(points_); }

  private:
    std::vector<WatchPoint> points_;
    fs::path end_;
};

void add_file(PointFinder& finder, const fs::path& path) {
    if (finder.walk(path))
        finder.add_lists(finder.end().parent_path().string(), WatchPoint::Names::one,
                         finder.end().filename().string());
}

// Goes down a pattern, from the folder `at`, which is there.
void add_pattern(PointFinder& finder, const fs::path& at, std::deque<fs::path> left) {
    const std::string part = left.front().string();
    left.pop_front();
    if (left.empty()) {
        finder.add_lists(at.string(), WatchPoint::Names::pattern, part);
        // A list that is a symbolic link may have its file elsewhere.
        glob_t matches{};
        if (::glob((at / part).c_str(), GLOB_NOSORT, nullptr, &matches) == 0)
            for (std::size_t i = 0; i < matches.gl_pathc; i++)
                if (fs::is_symlink(fs::symlink_status(matches.gl_pathv[i])))
                    add_file(finder, matches.gl_pathv[i]);
        ::globfree(&matches);
        return;
    }
    if (!is_pattern(part)) {
        if (finder.walk(at / part)) add_pattern(finder, finder.end(), left);
        return;
    }
    finder.add({.folder = at.string(), .names = WatchPoint::Names::none, .on_the_way = true});
    finder.add(
        {.folder = at.string(), .names = WatchPoint::Names::pattern, .name = part, .on_the_way = true});
    glob_t matches{};
    if (::glob((at / part).c_str(), GLOB_ONLYDIR, nullptr, &matches) == 0)
        for (std::size_t i = 0; i < matches.gl_pathc; i++) {
            std::error_code gone;
            if (fs::is_directory(matches.gl_pathv[i], gone) && finder.walk(matches.gl_pathv[i]))
                add_pattern(finder, finder.end(), left);
        }
    ::globfree(&matches);
}

} // namespace

bool WatchPoint::concerns(std::string_view what) const {
    switch (names) {
    case Names::none:
        return what.empty();
    case Names::one:
        return what == name;
    case Names::lists:
        return is_list_name(what);
    case Names::pattern:
        return ::fnmatch(name.c_str(), std::string(what).c_str(), FNM_PERIOD) == 0;
    }
    return false;
}

std::vector<WatchPoint> watch_points(const SourceSpec& source) {
    PointFinder finder;
    if (const auto* file = std::get_if<FileSpec>(&source)) {
        add_file(finder, fs::path(file->path).lexically_normal());
    } else if (const auto* spec = std::get_if<FolderSpec>(&source)) {
        if (finder.walk(fs::path(spec->path).lexically_normal())) {
            const fs::path folder = finder.end();
            finder.add_lists(folder.string(), WatchPoint::Names::lists);
            std::error_code error;
            for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
                if (entry.is_symlink(error) && is_list_name(entry.path().filename().string()))
                    add_file(finder, entry.path());
        }
    } else if (const auto* glob = std::get_if<GlobSpec>(&source)) {
        const fs::path pattern = fs::path(glob->pattern).lexically_normal();
        std::deque<fs::path> parts(pattern.begin(), pattern.end());
        parts.pop_front(); // the root
        if (!parts.empty()) add_pattern(finder, "/", std::move(parts));
    }
    return std::move(finder).points();
}

} // namespace sieve::service
