// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/file_source.hpp"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

tl::unexpected<Error> unreadable(const std::string& path, int error) {
    return bad_input(fmt::format("{}: cannot be read: {}", printable(path), errno_text(error)));
}

} // namespace

Result<std::vector<std::string>> files_of_folder(const std::string& path) {
    std::error_code error;
    std::vector<std::string> files;
    for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code gone; // a file that goes away meanwhile is none
        if (entry->is_regular_file(gone) && is_list_name(entry->path().filename().string()))
            files.push_back(entry->path().string());
    }
    if (error) return unreadable(path, error.value());
    std::sort(files.begin(), files.end());
    return files;
}

Result<std::vector<std::string>> files_of_glob(const std::string& pattern) {
    glob_t matches{};
    const int error = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
    std::vector<std::string> files;
    if (error == 0)
        for (std::size_t i = 0; i < matches.gl_pathc; i++) {
            std::error_code gone;
            if (std::filesystem::is_regular_file(matches.gl_pathv[i], gone))
                files.emplace_back(matches.gl_pathv[i]);
        }
    ::globfree(&matches);
    if (error != 0 && error != GLOB_NOMATCH) return unreadable(pattern, error == GLOB_NOSPACE ? ENOMEM : EIO);
    std::sort(files.begin(), files.end());
    return files;
}

bool is_list_name(std::string_view name) {
    constexpr std::array<std::string_view, 6> endings{"~", ".bak", ".tmp", ".swp", ".part", ".new"};
    if (name.empty() || name.front() == '.') return false;
    if (name.find(".dpkg-") != std::string_view::npos || name.find(".rpm") != std::string_view::npos)
        return false;
    return std::none_of(endings.begin(), endings.end(),
                        [&](std::string_view ending) { return name.ends_with(ending); });
}

} // namespace sieve::service
